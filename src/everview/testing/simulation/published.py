"""Published views in a world: whoever shows one shows a state that its authority has shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from everview.testing.simulation.device import Device
from everview.testing.simulation.oracle import History

Row = tuple[Any, ...]
At = tuple[int, int]
Shown = dict[str, Counter[Row]]
"""View → its rows."""


def standings(device: Device) -> dict[str, At]:
    """View that is published → the state of it that a device has."""
    found = device.store.engine.published.values()
    return {one.view.name: one.stands(device.store.writer.connection).at for one in found}


def note_published(device: Device, history: History) -> None:
    """Take note of what an authority shows, for all that will have it from there."""
    for published in device.store.engine.own():
        if published.is_own(device.store.writer.connection):
            states = history.published.setdefault(published.view.name, {})
            shown = states.setdefault(standings(device)[published.view.name], [])
            if (rows := device.rows(published.view.name)) not in shown:
                shown.append(rows)


def foreign(device: Device) -> Shown:
    """The published views that a device has from others."""
    own = {published.view.name for published in device.store.engine.own()}
    return {view: device.rows(view) for view in standings(device) if view not in own}


def contradiction(device: Device, history: History) -> str:
    """What a device shows that the authority never showed, or publishes otherwise; empty if nothing."""
    for view, at in standings(device).items():
        shown = device.rows(view)
        states = history.published.get(view, {}).get(at, [])
        if at[0] and shown not in states:
            return f"{device.name} shows {view} at {at} as {shown}, and its authority {states}"
    for published in device.store.engine.own():
        here = device.store.writer.connection
        if published.is_own(here):
            rows = here.execute(f"SELECT * FROM {published.table.name} WHERE w > 0").fetchall()
            if sum(row[-2] for row in rows) != device.rows(published.view.name).total():
                return f"{device.name} publishes of {published.view.name} {rows}"
    return ""


def last_published(devices: Collection[Device], history: History) -> Shown:
    """The views whose authority is gone, as it showed them in the last state that anybody has."""
    found: Shown = {}
    alive = {published.view.name for device in devices for published in device.store.engine.own()}
    for view in history.program.views.values():
        if view.authority is not None and view.name not in alive:
            at = max((standings(device).get(view.name, (0, 0)) for device in devices), default=(0, 0))
            found[view.name] = history.published.get(view.name, {}).get(at, [Counter()])[0]
    return found
