"""Who can be fed: in a world where sites host different parts, not everything gets everywhere.

What is promised: a view is fed by who hosts it too, unless that one computes it from other views, and by who
hosts all relations that it is made from. So it gets to whoever is linked over such sites with the anchor,
which has everything. A site that hosts all that a view reads computes it from that.

Besides, a stream that a site asks for gets there over sites that have it: they receive it, or hold the
relations that it is made from, shown or not. Of a published view the way begins at its authority.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from everview.language.correlation import scans_of
from everview.language.program import Program
from everview.planner.published import published_stream
from everview.testing.simulation.device import Device

Links = Mapping[str, Collection[str]]
"""Site → its neighbours."""


class Reach:
    """What gets to whom over the links; `devices` begin with the anchor."""

    def __init__(self, devices: Collection[Device], links: Links) -> None:
        self._devices = {device.name: device for device in devices}
        self._links = links
        self._reached: dict[str, frozenset[str]] = {}

    def is_fed(self, device: Device, name: str) -> bool:
        """Whether a relation or view that a device has can be right there."""
        exchange = device.store.engine.exchange
        if name in exchange.program.relations:
            return self.gets(device, name)
        if name in exchange.published and not exchange.published[name]:
            return self.gets(device, published_stream(name))
        reads = set(scans_of(exchange.views[name].plan))
        return self._is_promised(device, name) or all(
            self.is_fed(device, read) if read in exchange.program.names() else self.gets(device, read)
            for read in reads
        )

    def _is_promised(self, device: Device, view: str) -> bool:
        """Whether a view has to get to a device that does not compute it, however that keeps it."""
        key, program = f"view {view}", device.store.program
        made_from = _written_out(program, view, frozenset())
        published = program.views[view].authority is not None  # who is fed by that one passes on its result
        if published or _computes(device, view) or not program.relations.keys() >= made_from:
            return False

        def feeds(found: Device) -> bool:
            return found.hosts >= made_from or (view in found.hosts and not _computes(found, view))

        if key not in self._reached:
            self._reached[key] = self._spread(next(iter(self._devices.values())), feeds)
        return device.name in self._reached[key]

    def gets(self, device: Device, stream: str) -> bool:
        """Whether a stream that a device reads from others gets there."""
        if stream not in self._reached:
            self._reached[stream] = self._spread(self._source(stream), lambda found: self._has(found, stream))
        return device.name in self._reached[stream]

    def _has(self, device: Device, stream: str) -> bool:
        """Whether a stream is passed on by a device: it receives it, or gets what it makes it from."""
        engine = device.store.engine
        if stream in engine.streams or stream in engine.partials or stream in engine.published:
            return True
        fed = engine.feeds.get(stream)
        if fed is None and engine.offered(stream) is None:
            return False
        inputs = engine.inputs_of(stream) if fed is None else fed.partials.inputs
        return all(self.gets(device, relation) for relation in inputs)

    def _spread(self, start: Device | None, passes: Callable[[Device], bool]) -> frozenset[str]:
        """The sites that are linked with one over such that pass it on."""
        reached = [start.name] if start is not None and passes(start) else []
        for one in reached:
            near = (self._devices[other] for other in sorted(self._links.get(one, ())))
            reached += [found.name for found in near if found.name not in reached and passes(found)]
        return frozenset(reached)

    def _source(self, stream: str) -> Device | None:
        """Where a stream comes from: the anchor, or of a published view its authority, if that is fed."""
        anchor = next(iter(self._devices.values()))
        for device in self._devices.values():
            for published in device.store.engine.own():
                if published.stream == stream:
                    return device if self.is_fed(device, published.view.name) else None
        return anchor


def _computes(device: Device, view: str) -> bool:
    """Whether a device hosts all that a view reads, views that it does not host written out."""
    return device.hosts >= _written_out(device.store.program, view, device.hosts)


def _written_out(program: Program, view: str, stop: frozenset[str]) -> frozenset[str]:
    """What a view reads, with views replaced by what these read, but for those at which to stop."""
    found: set[str] = set()
    for read in program.views[view].reads:
        known = program.views.get(read)
        ends = read in stop or known is None or known.authority is not None
        found |= {read} if ends else _written_out(program, read, stop)
    return frozenset(found)
