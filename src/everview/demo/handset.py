"""What runs in a device's process: orders come in as lines of JSON, and each is answered by one line."""

from __future__ import annotations

import datetime as dt
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from everview.errors import EverviewError

Order = Mapping[str, Any]
Orders = Mapping[str, Callable[[Order], Any]]


def obey(orders: Orders, address: str) -> None:
    """Say where the device is reached; then do what is said, until nobody says anything any more."""
    _say({"address": address})
    for line in sys.stdin:
        order = json.loads(line)
        try:
            _say({"answer": orders[order["do"]](order)})
        except EverviewError as error:
            _say({"error": str(error)})


def read_rows(read: Callable[[str], list[tuple[Any, ...]]]) -> Callable[[Order], dict[str, Any]]:
    """An order that asks for the rows of relations and views."""
    return lambda order: {name: [list(row) for row in read(name)] for name in order["names"]}


def as_time(text: str) -> dt.datetime:
    """A time that came as JSON."""
    return dt.datetime.fromisoformat(text)


def _say(answer: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer, default=str) + "\n")
    sys.stdout.flush()
