"""Subscriptions: who is told what a commit changed in a stage."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from everview.streams.pipelines.change import Update

Callback = Callable[[Update], object]


@dataclass(slots=True, eq=False)
class Subscription:
    """A subscription to the updates of a stage."""

    stage: str
    callback: Callback
    _cancel: Callable[[Subscription], None] = field(repr=False)

    def cancel(self) -> None:
        """End it; doing so twice is harmless."""
        self._cancel(self)


class Subscriptions:
    """Tells subscribers of commits, in the committing thread, after the commit.

    An exception in a callback keeps no other from being told and does not undo the commit; it is raised to
    whoever committed when all have been told.
    """

    def __init__(self, on_change: Callable[[set[str]], None]) -> None:
        self._on_change = on_change
        self._lock = threading.Lock()
        self._all: tuple[Subscription, ...] = ()

    def add(self, stage: str, callback: Callback) -> Subscription:
        """Begin to tell of a stage."""
        subscription = Subscription(stage, callback, self._remove)
        with self._lock:
            self._all = (*self._all, subscription)
        self._on_change(self.stages)
        return subscription

    def _remove(self, subscription: Subscription) -> None:
        with self._lock:
            self._all = tuple(other for other in self._all if other is not subscription)
        self._on_change(self.stages)

    @property
    def stages(self) -> set[str]:
        """The stages that somebody is told of."""
        return {subscription.stage for subscription in self._all}

    def tell(self, updates: list[Update]) -> None:
        """Tell of one commit."""
        errors: list[Exception] = []
        told = self._all
        for update in updates:
            for subscription in told:
                if subscription.stage == update.stage and subscription in self._all:
                    try:
                        subscription.callback(update)
                    except Exception as error:  # noqa: BLE001 - raised again when all have been told
                        error.add_note(f"raised by a subscriber of {update.stage}; the commit stands")
                        errors.append(error)
        if len(errors) > 1:
            raise ExceptionGroup("several subscribers failed; the commit stands", errors)
        if errors:
            raise errors[0]


async def updates(subscribe: Callable[[Callback], Subscription], now: Any) -> AsyncIterator[Update]:
    """Yield the present value, then every update; those that a slow reader has not taken become one."""
    loop = asyncio.get_running_loop()
    news = asyncio.Event()
    pending: list[Update] = []

    def put(update: Update) -> None:
        if pending:
            pending[0] = replace(update, changes=[*pending[0].changes, *update.changes])
        else:
            pending.append(update)
        news.set()

    subscription = subscribe(lambda update: loop.call_soon_threadsafe(put, update))
    try:
        yield now()
        while True:
            await news.wait()
            news.clear()
            yield pending.pop()
    finally:
        subscription.cancel()
