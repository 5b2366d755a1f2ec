"""Virtual time: one clock for the world, and how far each site's own is off."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from dataclasses import dataclass, field

from everview.engines.sqlite.environment import Environment

START_US = 1_800_000_000_000_000
"""When worlds begin: some day in 2027."""


@dataclass(slots=True)
class Clocks:
    """The time, and chance: tags and incarnations that depend on nothing but the seed and who asks."""

    seed: int
    now_us: int = START_US
    skews: dict[str, int] = field(default_factory=dict)
    """Site → seconds that its clock is ahead."""
    born: Counter[str] = field(default_factory=Counter)
    """Site → incarnations it had so far."""
    chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.chance = random.Random(f"{self.seed}/tags")

    def pass_time(self, seconds: int) -> None:
        """Let time pass; every time a little more than said, so that no two steps are at one time."""
        self.now_us += seconds * 1_000_000 + 7

    def environment(self, site: str) -> Environment:
        """What a site takes for the world. No tag comes twice, though a store may go back in time."""

        def incarnation() -> str:
            self.born[site] += 1
            text = f"{self.seed}/{site}/{self.born[site]}"
            return hashlib.sha256(text.encode()).hexdigest()[:16]

        def time() -> int:
            return self.now_us + self.skews.get(site, 0) * 1_000_000

        return Environment(time, lambda: self.chance.getrandbits(53), incarnation)
