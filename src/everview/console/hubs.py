"""A hub, as the console looks at it: what it shows is its last refresh."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from everview.console.pictures import Box, Picture
from everview.console.subject import status_of
from everview.engines.sqlite.inspecting import Rows
from everview.engines.sqlite.trials import Turn
from everview.language.program import Program
from everview.planner.why.answer import Provenance

if TYPE_CHECKING:
    from everview.hub import Hub, RefreshReport
    from everview.hub.outcome import Change
    from everview.server.hubs import HubService

__all__ = ["HubSubject"]

Row = tuple[Any, ...]


class HubSubject:
    """A hub that runs and is served."""

    kind: Literal["site", "hub"] = "hub"

    def __init__(self, hub: Hub, service: HubService) -> None:
        self._hub, self._service = hub, service

    @property
    def name(self) -> str:
        """The hub's label."""
        return self._hub.name

    @property
    def program(self) -> Program:
        """What it runs."""
        return self._hub.program

    def hosted(self) -> Sequence[str]:
        """Everything in the program but what Everview keeps for itself."""
        relations = self.program.relations
        return [n for n in self.program.names() if n not in relations or not relations[n].system]

    def mark(self, head: int) -> str:
        """There is something new with each commit of the gate, each refresh, and each part of one."""
        part = self._hub.timing.part
        return f"{head}.{self._hub.refreshed}.{part.name if part is not None else ''}"

    def count(self, name: str) -> tuple[int, bool]:
        """How many rows there are: exactly, where they are few."""
        return self._hub.inspection.count(name)

    def rows(self, name: str, offset: int, limit: int) -> Rows:
        """Some rows, as of the last refresh."""
        return self._hub.inspection.rows(name, offset, limit)

    def why(self, name: str, row: Row) -> Provenance:
        """Why a row is there; for many rows, by Spark jobs."""
        return self._hub.why(name, row)

    def without(self, relation: str, row: Row, names: Iterable[str]) -> Mapping[str, Turn] | None:
        """Tried on a copy in memory, where the rows are few enough."""
        return self._hub.inspection.without(relation, row, names)

    def is_monotone_here(self, view: str) -> bool:  # noqa: ARG002 - all relations are here
        """Not looked into: what a deletion does is tried here, never read off the provenance."""
        return False

    def picture(self, view: str) -> Picture:
        """The operators that remember something, and what the last refresh did to them."""
        operators = self._hub.inspection.operators(view)
        report = self._last()
        names = dict.fromkeys([*operators, *(s for o in operators.values() for s in sorted(o.reads))])
        numbers = {name: number for number, name in enumerate(names)}
        boxes = []
        for name, number in numbers.items():
            operator = operators.get(name)
            reads = (
                tuple(numbers[source] for source in sorted(operator.reads)) if operator is not None else ()
            )
            title, _, detail = operator.title.partition(",") if operator is not None else (name, "", "")
            kind: Literal["view", "relation", "operator"] = "operator"
            if name in self.program.views:
                kind, title, detail = "view", name, "" if name == view else "another view"
            elif name in self.program.relations:
                kind, detail = "relation", self.program.relations[name].semantics.value.replace("_", "-")
                detail += " relation"
            elif operator is not None:
                title, detail = (
                    title.lower(),
                    ", ".join(filter(None, [detail.strip(), operator.keeping.value])),
                )
            change = _change(report, name, operators=kind == "operator")
            more, less = (change.appeared, change.disappeared) if change is not None else (None, None)
            boxes.append(Box(number, kind, title, detail, reads, more, less))
        return Picture(tuple(boxes), report.refresh if report is not None else None, "refresh")

    def _last(self) -> RefreshReport | None:
        return self._service.refreshes[-1][1] if self._service.refreshes else None

    def explain(self, name: str) -> str:
        """How a view is kept, and what that costs."""
        if name in self.program.relations:
            kind = self.program.relations[name].semantics.value.replace("_", "-")
            return f"{name} is a {kind} relation: sites and the hub write to it."
        return self._hub.explain(name)

    def insert(self, relation: str, row: Row) -> str:
        """Put a row into the inbox."""
        self._hub.insert(relation, [row])
        return "accepted; it is there after the next refresh"

    def delete(self, relation: str, row: Row) -> str:
        """Put a deletion into the inbox."""
        self._hub.delete(relation, [row])
        return "accepted; it is gone after the next refresh"

    def status(self) -> Mapping[str, Any]:
        """Members and peers of the gate."""
        return status_of(self._hub.replica)

    def refreshes(self) -> Mapping[str, Any] | None:
        """The last refreshes, the latest first; what is under way, and what waits."""
        status, timing = self._hub.status(), self._hub.timing
        part, began = timing.part, timing.began
        error = self._service.pipeline.error
        return {
            "refresh": status.refresh,
            "refreshed_us": status.refreshed_us,
            "running": self._service.pipeline.is_running,
            "waiting": {
                "writes": status.waiting.writes,
                "commits": status.waiting.commits,
                "rows": status.waiting.rows,
            },
            "kept": {"files": status.files, "bytes": status.bytes, "rows": status.rows},
            "error": None if error is None else " ".join(str(error).split()),
            "under_way": None
            if began is None
            else {
                "stage": part.name if part is not None else "",
                "rows": part.rows if part is not None else 0,
                "seconds": round(time.monotonic() - began, 3),
            },
            "refreshes": [_told(ended, report) for ended, report in reversed(list(self._service.refreshes))],
        }


def _told(ended: float, report: RefreshReport) -> dict[str, Any]:
    return {
        "refresh": report.refresh,
        "ended_us": int(ended * 1e6),
        "arrivals": report.arrivals,
        "jobs": report.jobs,
        "stages": {stage: round(seconds, 4) for stage, seconds in report.stages.items()},
        "changes": {
            name: {"appeared": change.appeared, "disappeared": change.disappeared}
            for name, change in report.changes.items()
        },
        "rejected": [{"name": one.name, "reason": one.reason} for one in report.rejected],
    }


def _change(report: RefreshReport | None, name: str, *, operators: bool) -> Change | None:
    """What a refresh did to a relation, view or operator; of operators it may not be known."""
    found = None if report is None else report.operators if operators else report.changes
    if found is None:
        return None
    from everview.hub.outcome import Change  # noqa: PLC0415 - a device has no hub

    return found.get(name, Change(0, 0))
