"""The console as a server has it: the page, and the addresses that it asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.routing import BaseRoute

from everview.console.api import Api
from everview.console.assets import asset_routes
from everview.console.subject import Subject
from everview.server.pages import Guard

__all__ = ["Console"]


class Console:
    """Shows a subject, or a simulator's run, or both; read-only unless it `writes`."""

    def __init__(
        self,
        subject: Subject | None = None,
        *,
        writes: bool = False,
        simulation: Mapping[str, Any] | None = None,
    ) -> None:
        self._api = Api(subject, writes=writes, simulation=simulation)

    def routes(self, guard: Guard) -> Sequence[BaseRoute]:
        """All addresses."""
        return [*asset_routes(), *self._api.routes(guard)]
