"""The demo as it is, played once; then what it leaves is served by the commands that it prints."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from tests.browser.processes import process

from everview import Site
from everview.demo.proof import recomputed
from everview.demo.terrain import DAWN, DRONES, RELATIONS, STEP, TEAMS

AUDIT = Path(__file__).parent / "audit"
LANDED = 60
"""Steps after dawn: all windows that the drones closed before are over."""


class Demo:
    """What is left of a mission: nine stores, of which some are served again."""

    def __init__(self, folder: Path) -> None:
        self.asked = folder / "asked.txt"
        path = os.pathsep.join(filter(None, [str(AUDIT), os.environ.get("PYTHONPATH")]))
        self.environment = os.environ | {"PYTHONPATH": path, "EVERVIEW_ASKED": str(self.asked)}
        played = subprocess.run(
            [sys.executable, "-m", "everview.demo", "--fast", "--keep", "--no-browser"],
            capture_output=True,
            text=True,
            check=False,
            env=self.environment | {"TMPDIR": str(folder), "COLUMNS": "100"},
        )
        assert played.returncode == 0, played.stdout + played.stderr
        assert "Everyone agrees." in played.stdout
        self.folder = Path(
            re.search(r"^The stores are in (.*)\. To look around:$", played.stdout, re.MULTILINE)[1]
        )
        self.commands = [
            shlex.split(line)[1:] for line in re.findall(r"^  (everview .*)$", played.stdout, re.MULTILINE)
        ]
        self._open = ExitStack()
        self._threads = ThreadPoolExecutor(3)
        self._served: dict[str, Future[str]] = {}
        self.processes: list[int] = []
        self._steps = LANDED

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown()
        self._open.close()

    def begin(self, name: str) -> Future[str]:
        """Serve a site, or the hub, as the demo says how to: its command, at any free port.

        The command for the post serves for other sites as well.
        """
        if name not in self._served:
            self._served[name] = self._threads.submit(self._serve, name)
        return self._served[name]

    def _serve(self, name: str) -> str:
        hub = name == "hub"
        words = next(words for words in self.commands if words[0] == ("hub" if hub else "serve"))
        changed = {"--port": "0", "--store": str(self.folder / (name if hub else f"{name}.db"))}
        words = [changed.get(before, word) for before, word in pairwise(["", *words])]
        words += ["--allow-write"] if name in ("hub", "post") else []
        served = process(*words, cwd=self.folder, environment=self.environment)
        started, console = self._open.enter_context(served)
        self.processes.append(started.pid)
        return console

    def console(self, name: str) -> str:
        """The address of a console, once it is there."""
        return self.begin(name).result()

    def address(self, name: str) -> str:
        """Where others reach a site that is served, or the hub."""
        parts = urlsplit(self.console(name))
        return f"{parts.scheme}://{parts.netloc}"

    def site(self, name: str) -> Site:
        return Site.open(self.folder / f"{name}.db")

    def rows(self, name: str = "post") -> dict[str, list[tuple[Any, ...]]]:
        """What a site has, by its store."""
        with self.site(name) as site:
            return {table: site.rows(table) for table in site.inspection.hosted()}

    def recomputed(self, *without: tuple[str, tuple[Any, ...]]) -> dict[str, list[tuple[Any, ...]]]:
        """The views, by plain SQLite, from the relations of the post, or from these without a row.

        Whether a window is final is not asked of it.
        """
        kept = self.rows()
        base = {n: [row for row in kept[n] if (n, row) not in without] for n in RELATIONS}
        found = recomputed({n: [tuple(map(_plain, row)) for row in rows] for n, rows in base.items()})
        return found | {"seen": [row[:3] for row in found["seen"]]}

    def sees(self, drone: str, sector: int, *what: str) -> None:
        """A drone that has taken off again sees something, within ten minutes, and meets the post."""
        self._steps += 5  # another ten minutes
        at = DAWN + self._steps * STEP
        with self.site(drone) as site:
            site.insert("sightings", [(drone, at, sector, one) for one in what])
            site.sync(self.address("post"))

    def gather(self) -> None:
        """Everybody meets the post until all have everything, and the post knows that they have."""
        with ExitStack() as stack:
            sites = [stack.enter_context(self.site(name)) for name in (*DRONES, *TEAMS)]
            for _ in range(3):
                for site in sites:
                    site.sync(self.address("post"))

    def report(self) -> None:
        """The post meets the hub, as it does in the demo."""
        with self.site("post") as post:
            post.sync(self.address("hub"))


def _plain(value: Any) -> Any:
    """As the demo's processes tell it."""
    return str(value) if hasattr(value, "isoformat") else value
