"""What a store takes from the world around it: the time, and chance. Simulations give it others."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass


def _now_us() -> int:
    return time.time_ns() // 1000


def _tag() -> int:
    return secrets.randbits(53)


def _incarnation() -> str:
    return secrets.token_hex(8)


@dataclass(frozen=True, slots=True)
class Environment:
    """Microseconds since 1970, random tags, and incarnations that nobody else has."""

    now_us: Callable[[], int] = _now_us
    tag: Callable[[], int] = _tag
    incarnation: Callable[[], str] = _incarnation


THE_WORLD = Environment()
