"""A loop without a clock: time jumps to whatever is due next, and what is ready runs in a random order."""

import asyncio


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self, chance):
        super().__init__()
        self._chance = chance
        self._now = 0.0
        self.steps = 0

    def time(self):
        return self._now

    def _run_once(self):
        self.steps += 1
        if not self._ready:
            due = min((handle.when() for handle in self._scheduled if not handle.cancelled()), default=None)
            if due is None:
                raise AssertionError("nobody can go on")
            self._now = max(self._now, due)
        else:
            ready = list(self._ready)
            self._chance.shuffle(ready)
            self._ready.clear()
            self._ready.extend(ready)
        super()._run_once()


def run(main, chance):
    """Run a coroutine by a schedule that chance decides."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(chance)) as runner:
        return runner.run(main)
