"""The live picture: sites, who reaches whom, what each of them sees; and what happened last.

Where nobody watches a terminal, what happens is printed line by line.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from everview.demo.mission import Mission
from everview.demo.terrain import DAWN, DRONES, HUB, POST, STEP, TEAMS

_LINES = 9


class Screen:
    """Shows a mission on a terminal."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.addresses: list[str] = []
        self._events: deque[str] = deque(maxlen=_LINES)
        self._started = time.monotonic()
        self._live: Live | None = None

    def tell(self, event: str) -> None:
        """Note something that happened."""
        line = f"[dim]{time.monotonic() - self._started:5.1f} s[/]  {event}"
        self._events.append(line)
        if self._live is None:
            self.console.print(line, soft_wrap=True, highlight=False)

    @contextmanager
    def live(self) -> Iterator[None]:
        """While this lasts the picture is drawn in place, if there is a terminal."""
        if not self.console.is_terminal:
            yield
            return
        with Live(console=self.console, refresh_per_second=8) as self._live:
            yield
        self._live = None

    def draw(self, mission: Mission) -> None:
        """Draw how the mission stands."""
        if self._live is not None:
            self._live.update(self.picture(mission))

    def picture(self, mission: Mission) -> Group:
        """The picture as it is drawn."""
        clock = (DAWN + mission.now * STEP).strftime("%H:%M")
        title = "" if mission.phase is None else mission.phase.title
        head = Text.assemble((f" {clock} ", "reverse"), "  ", (title, "bold"))
        events = Text.from_markup("\n".join(self._events))
        parts: list[RenderableType] = [
            head,
            sites(mission),
            Panel(events, title="what happens", title_align="left", height=_LINES + 2),
        ]
        if self.addresses:
            parts.append(Text("  ".join(["look inside:", *self.addresses]), style="cyan"))
        return Group(*parts)


def sites(mission: Mission) -> Table:
    """What each site has and sees."""
    table = Table(expand=True, box=box.SIMPLE_HEAD, padding=0, pad_edge=False)
    table.add_column("site", no_wrap=True, min_width=8)
    table.add_column("reaches", no_wrap=True, max_width=20)
    table.add_column("sightings", no_wrap=True, justify="right", min_width=10)
    table.add_column("reachable", no_wrap=True, justify="right", min_width=10)
    table.add_column("", min_width=1)
    table.add_column("most urgent", no_wrap=True, min_width=11)
    table.add_column("orders", no_wrap=True, min_width=14)
    total = len(mission.written)
    links = mission.phase.links if mission.phase else frozenset()
    for name in (HUB, POST, *TEAMS, *DRONES):
        shown = mission.shown.get(name, {})
        there = mission.crew[name].is_running
        reached = sorted({b for a, b in links if a == name} | {a for a, b in links if b == name})
        seen = len(shown.get("sightings", ()))
        style = "green" if seen == total else "yellow"
        urgent = max(shown.get("priority", ()), key=lambda row: row[2], default=None)
        orders = [f"{unit} → {where}" for unit, _, where, _ in shown.get("orders", ())]
        own = [order for order in orders if order.startswith(name)] or orders
        table.add_row(
            f"[bold]{name}[/]" if there else f"[red]{name}[/]",
            " ".join(reached) if there and reached else ("[dim]nobody[/]" if there else "[red]fallen[/]"),
            f"[{style}]{seen}[/] of {total}",
            str(len(shown["reachable"])) if "reachable" in shown else "[dim]–[/]",
            "",
            f"{urgent[1]} ({urgent[2]})" if urgent else "[dim]–[/]",
            (own[0] + (f" and {len(orders) - 1} more" if len(orders) > 1 else ""))
            if orders
            else "[dim]none[/]",
        )
    return table
