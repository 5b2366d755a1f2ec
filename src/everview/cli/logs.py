"""What is logged while a command runs, on standard error: one line each, for people or for programs."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, TypeAlias

import typer

__all__ = ["LogFormat", "LogFormatOption", "LogLevel", "LogLevelOption", "logging_to_stderr", "warning_once"]


class LogFormat(StrEnum):
    """How a line looks."""

    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    """From what on something is said."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


LogFormatOption: TypeAlias = Annotated[
    LogFormat, typer.Option("--log-format", help="How lines of the log look.")
]
LogLevelOption: TypeAlias = Annotated[LogLevel, typer.Option("--log-level", help="How much is logged.")]


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = f"{_time(record)} {record.levelname.lower()} {' '.join(record.getMessage().split())}"
        return line if record.exc_info is None else f"{line}\n{self.formatException(record.exc_info)}"


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": getattr(record, "event", "message"),
            "message": " ".join(record.getMessage().split()),
            **getattr(record, "fields", {}),
        }
        if record.exc_info is not None:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def _time(record: logging.LogRecord) -> str:
    return (
        datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )


@contextmanager
def logging_to_stderr(look: LogFormat, level: LogLevel) -> Iterator[None]:
    """Have what Everview logs on standard error, and nobody else's chatter."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if look is LogFormat.JSON else _Text())
    with _handling(handler, level):
        yield


@contextmanager
def warning_once() -> Iterator[None]:
    """Have warnings on standard error, each once: an exchange comes across the same thing page by page."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Warning())
    said: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        message = record.getMessage()
        known = message in said
        said.add(message)
        return not known

    handler.addFilter(is_new)
    with _handling(handler, LogLevel.WARNING):
        yield


class _Warning(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"{record.levelname.lower()}: {' '.join(record.getMessage().split())}"


@contextmanager
def _handling(handler: logging.Handler, level: LogLevel) -> Iterator[None]:
    logger = logging.getLogger("everview")
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(level.value.upper())
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.level, logger.propagate = before
