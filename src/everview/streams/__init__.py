"""Streams: what is consumed in order, message by message, beside the views that are always whole.

A public name is loaded when it is first used: a device need not wait for what Spark needs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from everview.errors import MissingDependencyError

if TYPE_CHECKING:
    from everview.streams.pipelines.change import Update
    from everview.streams.pipelines.delta import StageDelta
    from everview.streams.pipelines.description import source
    from everview.streams.pipelines.device.runner import DevicePipeline, open_device
    from everview.streams.pipelines.functions import field, over_arrow, words
    from everview.streams.pipelines.http import http_app
    from everview.streams.pipelines.keys import stable_hash
    from everview.streams.pipelines.partitioning import by_element, by_key
    from everview.streams.pipelines.pipeline import Pipeline
    from everview.streams.pipelines.spark.runner import HubPipeline, open_hub
    from everview.streams.pipelines.triggers import Waiting, every, on_new_data, when

__all__ = [
    "DevicePipeline",
    "HubPipeline",
    "Pipeline",
    "StageDelta",
    "Update",
    "Waiting",
    "by_element",
    "by_key",
    "every",
    "field",
    "http_app",
    "on_new_data",
    "open_device",
    "open_hub",
    "over_arrow",
    "source",
    "stable_hash",
    "when",
    "words",
]

_HOMES = {
    "DevicePipeline": "device.runner",
    "HubPipeline": "spark.runner",
    "Pipeline": "pipeline",
    "StageDelta": "delta",
    "Update": "change",
    "Waiting": "triggers",
    "by_element": "partitioning",
    "by_key": "partitioning",
    "every": "triggers",
    "field": "functions",
    "http_app": "http",
    "on_new_data": "triggers",
    "open_device": "device.runner",
    "open_hub": "spark.runner",
    "over_arrow": "functions",
    "source": "description",
    "stable_hash": "keys",
    "when": "triggers",
    "words": "functions",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'everview.streams' has no attribute {name!r}")
    try:
        value = getattr(importlib.import_module(f"everview.streams.pipelines.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        if _HOMES[name] != "spark.runner":
            raise
        raise MissingDependencyError(
            f"everview.streams.{name} needs {error.name}: pip install 'everview[hub]'"
        ) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
