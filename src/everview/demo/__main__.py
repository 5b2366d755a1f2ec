"""`python -m everview.demo`: start everyone, play the mission, prove that all agree."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
import webbrowser
from collections.abc import Sequence
from contextlib import ExitStack
from importlib import resources
from pathlib import Path

from rich.console import Console

from everview.demo.crew import Device
from everview.demo.mission import Mission
from everview.demo.proof import agreement, recomputed, sentence, tree
from everview.demo.screen import Screen, sites
from everview.demo.terrain import DRONES, HUB, ON_DRONES, POST, RELATIONS, TEAMS, VIEWS
from everview.errors import EverviewError

_STEPS, _FAST_STEPS = 48, 12
_PACE = 1.2
"""Seconds that a step takes at least, so that one can follow."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; return 0 if everybody agrees in the end."""
    parser = argparse.ArgumentParser(
        prog="python -m everview.demo",
        description="A search-and-rescue mission: a hub on Spark, a command post, three laptops and four "
        "drones lose each other, go on working, and meet again.",
    )
    parser.add_argument("--fast", action="store_true", help="half a minute instead of two")
    parser.add_argument("--keep", action="store_true", help="leave the stores, and say how to look at them")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="another mission (default: 1)")
    parser.add_argument("--no-browser", action="store_true", help="do not open the console in a browser")
    options = parser.parse_args(arguments)
    console = Console()
    folder = Path(tempfile.mkdtemp(prefix="everview-demo-"))
    try:
        with ExitStack() as stack:
            return _play(options, folder, console, stack)
    except EverviewError as error:
        console.print(f"[red]{error}[/]", soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        if options.keep:
            console.print(_commands(folder), soft_wrap=True, highlight=False)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _play(options: argparse.Namespace, folder: Path, console: Console, stack: ExitStack) -> int:
    program = folder / "rescue.sql"
    program.write_bytes(resources.files("everview.demo").joinpath("rescue.sql").read_bytes())
    crew = _crew(folder, program)
    screen = Screen(console)
    console.print("\n[bold]Everview[/]: views that are readable and writable everywhere, online or not\n")
    screen.tell("starting Spark, a command post, three laptops and four drones")
    for device in crew.values():
        stack.callback(device.stop)
        device.start()
    with console.status("starting; Spark takes longest"):
        for device in crew.values():
            device.meet()
    screen.addresses = [f"{crew[name].address}/console/" for name in (HUB, POST)]
    screen.tell(f"everyone is there; look inside: {' '.join(screen.addresses)}")
    if not options.no_browser and console.is_terminal and _has_desktop():
        webbrowser.open(screen.addresses[1])

    mission = Mission(crew, screen.tell, options.seed)
    stack.callback(mission.end)
    mission.muster()
    with screen.live():
        began = time.monotonic()
        steps = _FAST_STEPS if options.fast else _STEPS
        for number, _ in enumerate(mission.play(steps, crash=DRONES[1]), 1):
            screen.draw(mission)
            due = began + number * (0 if options.fast else _PACE)
            time.sleep(max(0.0, due - time.monotonic()))
        for _ in mission.land():
            screen.draw(mission)
    if not console.is_terminal:
        console.print(sites(mission))
    return 0 if _prove(mission, console) else 1


def _crew(folder: Path, program: Path) -> dict[str, Device]:
    crew = {HUB: Device(HUB, "cloud", folder / HUB, program)}
    for name in (POST, *TEAMS, *DRONES):
        hosts = ON_DRONES if name in DRONES else ()
        crew[name] = Device(name, "device", folder / f"{name}.db", program, *hosts)
    return crew


def _prove(mission: Mission, console: Console) -> bool:
    everything = (*RELATIONS, *VIEWS)
    shown = {name: device.rows(*(device.hosts or everything)) for name, device in mission.crew.items()}
    base = {name: shown[POST][name] for name in RELATIONS}
    table, agreed = agreement(shown, recomputed(base))
    console.print()
    console.print(table)
    lost = len(mission.written) - len(base["sightings"])
    console.print(
        f"{len(mission.written)} sightings were acknowledged, {lost} are missing. "
        + ("[green]Everyone agrees.[/]" if agreed and not lost else "[red]They do not agree.[/]")
    )
    drone = mission.crew[DRONES[3]]
    orders = shown[drone.name]["orders"]
    if orders:
        order = max(orders, key=lambda row: row[3])
        found = drone.ask("why", view="orders", row=[str(value) for value in order])
        console.print(f"\nAsked of {drone.name}, which has no row of sectors, paths or units:\n")
        console.print(sentence(order, found["tuples"]), soft_wrap=True)
        console.print(tree(order, found["tuples"]))
    return agreed and not lost


def _commands(folder: Path) -> str:
    """What to type to look around in what is left."""
    return "\n".join(
        [
            f"\nThe stores are in {folder}. To look around:",
            f"  everview query {folder}/team-1.db 'SELECT * FROM orders'",
            f"  everview why {folder}/team-1.db reachable sector=7",
            f"  everview explain {folder}/drone-1.db orders",
            f"  everview status {folder}/post.db",
            f"  everview serve --store {folder}/post.db --port 8440 --insecure",
            f"  everview hub --store {folder}/hub --program {folder}/rescue.sql --port 8441 --insecure",
        ]
    )


def _has_desktop() -> bool:
    return sys.platform in ("darwin", "win32") or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )


if __name__ == "__main__":
    sys.exit(main())
