"""Who can be fed: in a world where sites host different parts, not everything gets everywhere.

A stream gets from the anchor, which has everything, to whoever is linked with it over sites that have the
stream: they receive it, or hold the relations that it is made from. Of a published view the way begins at its
authority. A view is fed where all that it reads there is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from everview.language.correlation import scans_of
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
        return all(
            self.is_fed(device, read) if read in exchange.program.names() else self.gets(device, read)
            for read in reads
        )

    def gets(self, device: Device, stream: str) -> bool:
        """Whether a stream that a device reads from others gets there."""
        if stream not in self._reached:
            self._reached[stream] = self._spread(stream)
        return device.name in self._reached[stream]

    def _spread(self, stream: str) -> frozenset[str]:
        start = self._source(stream)
        reached = [] if start is None else [start.name]
        for one in reached:
            near = (self._devices[other] for other in sorted(self._links.get(one, ())))
            reached += [found.name for found in near if _has(found, stream) and found.name not in reached]
        return frozenset(reached)

    def _source(self, stream: str) -> Device | None:
        """Where a stream comes from: the anchor, or of a published view its authority, if that is fed."""
        anchor = next(iter(self._devices.values()))
        for device in self._devices.values():
            for published in device.store.engine.own():
                if published.stream == stream:
                    return device if self.is_fed(device, published.view.name) else None
        return anchor


def _has(device: Device, stream: str) -> bool:
    """Whether a stream is passed on by a device."""
    engine = device.store.engine
    found = engine.offered(stream) is not None or engine.telling(stream) is not None
    return found or stream in engine.published
