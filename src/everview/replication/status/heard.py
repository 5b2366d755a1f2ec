"""Who was heard of since this process began, and how far each has read here.

It is told to people who watch a store, and decides nothing: a store that is opened again has heard of nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from everview.replication.wire.messages import Greeting

__all__ = ["Heard"]

MOST = 10_000
"""How many sites are remembered: those that were heard of last."""

MOST_AHEAD = 100
"""Of so many it is said that they know a later state; any of them may lie."""


@dataclass(slots=True)
class Heard:
    """The sites that have greeted this one, those that were heard of last at the end."""

    _sites: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    ahead: dict[str, str] = field(default_factory=dict)
    """Sites that may only read and have read what is not here → names: perhaps this store has gone back."""
    greetings: dict[str, Greeting] = field(default_factory=dict)
    """What others whom this store has dialled have said last of how far they have read it."""

    def note(self, sender: str, name: str, greeting: Greeting, own: str, now_us: int) -> None:
        """Take note of a greeting; of how far it has read, where it means this incarnation."""
        read = greeting.read.version if greeting.to == bytes.fromhex(own) else 0
        self._sites.pop(sender, None)
        self._sites[sender] = name, read, now_us
        while len(self._sites) > MOST:
            del self._sites[next(iter(self._sites))]

    def answered(self, sender: str, greeting: Greeting | None) -> None:
        """Remember how far a store has read here that was dialled: news go with the next greeting."""
        if greeting is not None:
            self.greetings.pop(sender, None)
            self.greetings[sender] = greeting
            if len(self.greetings) > MOST:
                del self.greetings[next(iter(self.greetings))]

    def warn(self, sender: str, name: str) -> bool:
        """Note that a site which may only read knows a later state; return whether that is news."""
        is_news = sender not in self.ahead and len(self.ahead) < MOST_AHEAD
        if is_news:
            self.ahead[sender] = name
        return is_news

    def has(self, sender: str, version: int) -> None:
        """Count what a site was sent as taken, until it says otherwise; where it lacks nothing, too."""
        found = self._sites.get(sender)
        if found is not None:
            self._sites[sender] = found[0], max(found[1], version), found[2]

    def brought(self, sender: str, before: int) -> None:
        """Count the next commit as had by the site that brought it, if it had all before."""
        found = self._sites.get(sender)
        if found is not None and found[1] >= before:
            self.has(sender, before + 1)

    def sites(self, head: int) -> Iterator[dict[str, Any]]:
        """Yield each site: its name, how many commits it is not known to have, and when it was heard of."""
        for incarnation, (name, read, at_us) in list(self._sites.items()):
            lag = max(head - read, 0)
            yield {"incarnation": incarnation, "name": name, "lag": lag, "read": read, "heard_us": at_us}
