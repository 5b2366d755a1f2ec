"""The subject: what a console looks at, a site or a hub."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from everview.console.pictures import Picture
from everview.engines.sqlite.inspecting import Rows
from everview.engines.sqlite.trials import Turn
from everview.language.program import Program
from everview.planner.why.answer import Provenance

__all__ = ["Subject", "Without", "status_of"]

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Without:
    """What would change if a base row were deleted: by relation and view.

    Where the base row is not here, only what its derivations say of the row that was asked about is known:
    `vanishes` is that, and None where the trial tells it all.
    """

    turns: Mapping[str, Turn]
    vanishes: bool | None = None


class Subject(Protocol):
    """A site or a hub. Methods may be called from any thread; errors of ours are told to who asked."""

    kind: Literal["site", "hub"]

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def program(self) -> Program:
        """What it runs."""

    def hosted(self) -> Sequence[str]:
        """The relations and views that are here."""

    def mark(self, head: int) -> str:
        """A word that is another when there may be something new to show; `head` is the last commit."""

    def count(self, name: str) -> tuple[int, bool]:
        """How many rows a relation or view has, and whether that is exact."""

    def rows(self, name: str, offset: int, limit: int) -> Rows:
        """Some rows."""

    def why(self, name: str, row: Row) -> Provenance:
        """Why a row is there."""

    def without(self, relation: str, row: Row, names: Iterable[str]) -> Mapping[str, Turn] | None:
        """What would change if a row were deleted, in these names; None if its relation is not here."""

    def is_monotone_here(self, view: str) -> bool:
        """Whether what `why` says of a row of a view is all that it stands on."""

    def picture(self, view: str) -> Picture:
        """How a view is kept."""

    def explain(self, name: str) -> str:
        """The same in words."""

    def insert(self, relation: str, row: Row) -> str:
        """Insert a row; say in a line what became of it."""

    def delete(self, relation: str, row: Row) -> str:
        """Delete a row; say in a line what became of it."""

    def status(self) -> Mapping[str, Any]:
        """What `status` says of other sites, as of a replica; `heard` has those that came here."""

    def refreshes(self) -> Mapping[str, Any] | None:
        """The last refreshes of a hub; None of a site."""


def status_of(replica: Any) -> Mapping[str, Any]:
    """Return a replica's status, with the sites that have come to it since the process began."""
    status = replica.status()
    return {**status, "heard": list(replica.heard.sites(status["head"]))}
