"""Random programs for processors, their handler, and the naive twin that says what must come of them."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass

from everview.algebra.lattices import Max, MergeMap
from everview.streams.windows.coding import CANONICAL
from everview.streams.windows.group import Group
from everview.streams.windows.records import Entry, Output

COUNTS = MergeMap(Max())
KEEP = 3
"""How many windows back a message reads at most."""


@dataclass(frozen=True)
class Message:
    amount: int
    window: int
    """The window that it belongs to: if that has not begun, those before are closed without it."""
    reads: tuple[int, ...] = ()
    """How many windows back, before it adds something and after."""
    emits: int = 0
    closes: bool = False
    joins: tuple[str, ...] = ()
    leaves: bool = False


@dataclass(frozen=True)
class Program:
    members: frozenset[str]
    messages: Mapping[str, tuple[Message, ...]]

    def group(self, name="world"):
        return Group(name, COUNTS, self.members, keep=KEEP)


def random_program(chance, *, windows=6):
    """Who begins, and everybody's messages; late ones join with some window, early ones leave."""
    names = [f"p{number}" for number in range(chance.randint(2, 4))]
    late = {name: chance.randint(1, windows - 1) for name in names[1:] if chance.random() < 0.3}
    early = {
        name: chance.randint(late.get(name, 0), windows - 1) for name in names[1:] if chance.random() < 0.2
    }
    messages = {}
    for name in names:
        # A window is closed by its own last message, or by the first of a later window.
        mine, last = [], early.get(name, windows - 1)
        for window in range(late.get(name, 0), last + 1):
            joining = (
                tuple(other for other, first in late.items() if first == window + 1)
                if name == names[0]
                else ()
            )
            is_closed = bool(joining) or window == last or chance.random() < 0.6
            mine += [_message(chance, window) for _ in range(chance.randint(0, 3))]
            if is_closed:
                leaves = early.get(name) == window
                mine.append(_message(chance, window, closes=True, joins=joining, leaves=leaves))
        messages[name] = tuple(mine)
    return Program(frozenset(name for name in names if name not in late), messages)


def _message(chance, window, **more):
    reads = tuple(chance.randint(1, KEEP) for _ in range(2)) if chance.random() < 0.4 else ()
    return Message(
        chance.randint(1, 9), window, reads[: chance.randint(1, 2)], chance.choice([0, 0, 1, 2]), **more
    )


def total(state):
    return sum(state.values())


def handler(chance=None, *, flaky=0.0):
    """What processors do with a message. How long it takes, and whether it fails, is no part of it."""

    async def on_message(ctx, message):
        if ctx.current < message.window:
            ctx.emit("this is undone")
            ctx.update({"undone": 1})
            ctx.next_window(before=True)
        amount = message.amount
        for turn, back in enumerate(message.reads):
            if ctx.current - back >= 0:
                value = total(await ctx.window(ctx.current - back))
                ctx.emit([ctx.current - back, value])
                amount += value % 3
            if not turn:
                ctx.update({ctx.processor: ctx.state.get(ctx.processor, 0) + amount})
        if not message.reads:
            ctx.update({ctx.processor: ctx.state.get(ctx.processor, 0) + amount})
        if chance is not None and chance.random() < 0.3:
            await asyncio.sleep(chance.random() / 10)
        if chance is not None and chance.random() < flaky:
            raise RuntimeError("no luck")
        for number in range(message.emits):
            ctx.emit({"number": number, "mine": ctx.state[ctx.processor]})
        if message.closes:
            ctx.next_window(joins=dict.fromkeys(message.joins, 0), leaves=message.leaves)

    return on_message


@dataclass
class Expected:
    """All that is ever written down."""

    entries: dict[tuple[int, str], Entry]
    outputs: dict[tuple[str, int, int], Output]
    values: dict[int, bytes]


def evaluate(program):
    """Window by window, processor by processor: no concurrency, no failure, no board."""
    found = Expected({}, {}, {})
    states, places = {}, {}
    members, window = dict.fromkeys(program.members, 0), 0
    while members:
        for name in sorted(members):
            state = states.setdefault(name, {})
            places.setdefault(name, members[name])
            found.entries[window, name] = _close(program, name, window, state, places, found)
        entries = {name: found.entries[window, name] for name in members}
        joined = COUNTS.bottom()
        for name in entries:
            joined = COUNTS.join(joined, states[name])
        found.values[window] = CANONICAL.encode(joined)
        members = {name: 0 for name, entry in entries.items() if not entry.leaves}
        members |= {name: index for entry in entries.values() for name, index in entry.joins}
        window += 1
    return found


def _close(program, name, window, state, places, found):
    """Handle messages of one window; the entry that closes it."""
    messages = program.messages[name]
    while places[name] < len(messages):
        index = places[name]
        message = messages[index]
        if message.window > window:
            return Entry(window, name, index, CANONICAL.encode(state))
        amount, outputs = message.amount, []
        for turn, back in enumerate(message.reads):
            if window - back >= 0:
                value = total(CANONICAL.decode(found.values[window - back]))
                outputs.append([window - back, value])
                amount += value % 3
            if not turn:
                state[name] = state.get(name, 0) + amount
        if not message.reads:
            state[name] = state.get(name, 0) + amount
        outputs += [{"number": number, "mine": state[name]} for number in range(message.emits)]
        for number, output in enumerate(outputs):
            text = json.dumps(output, separators=(",", ":"), sort_keys=True)
            found.outputs[name, index, number] = Output(name, index, number, text)
        places[name] += 1
        if message.closes:
            joins = tuple((name, 0) for name in sorted(message.joins))
            return Entry(window, name, index + 1, CANONICAL.encode(state), joins, message.leaves)
    return Entry(window, name, places[name], CANONICAL.encode(state), (), True)
