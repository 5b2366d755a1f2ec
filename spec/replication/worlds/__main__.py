"""Run many worlds: `python -m spec.replication.worlds --runs N [--kind K] [--seed S]`."""

import argparse
import sys
import time
from collections import Counter

from spec.replication.worlds.registry import WORLDS


def main() -> int:
    """Run the worlds that were asked for; return 1 if one of them went wrong."""
    parser = argparse.ArgumentParser(prog="spec.replication.worlds", description="Run random worlds.")
    parser.add_argument("--runs", type=int, default=1000, help="worlds of each kind")
    parser.add_argument("--kind", choices=WORLDS, action="append", help="only this kind; may be repeated")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    arguments = parser.parse_args()
    went = [run(kind, arguments.seed, arguments.runs) for kind in arguments.kind or WORLDS]
    return int(any(went))


def run(kind: str, first: int, runs: int) -> bool:
    """Run worlds of one kind and say how they went; return whether one went wrong."""
    began, wrong, seeds, happened = time.monotonic(), Counter[str](), list[int](), Counter[str]()
    for done, seed in enumerate(range(first, first + runs), start=1):
        world = WORLDS[kind](seed)
        try:
            found = world.run()
        except Exception as problem:  # noqa: BLE001 - a world that breaks is a wrong world, and has a seed
            found = [f"{type(problem).__name__}: {problem}"]
        wrong.update(set(found))
        seeds += [seed] if found else []
        happened.update(world.count)
        if done % max(1, runs // 4) == 0:
            sys.stderr.write(f"{kind}: {done} of {runs}, {len(seeds)} wrong\n")
            sys.stderr.flush()
    counts = ", ".join(f"{count} {what}" for what, count in sorted(happened.items()))
    lines = [f"{kind}: {runs} worlds in {time.monotonic() - began:.0f} s, {len(seeds)} wrong; {counts}"]
    lines += [f"  {count} times: {what}" for what, count in wrong.most_common()]
    lines += [f"  seeds: {', '.join(map(str, seeds[:10]))}"] if seeds else []
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
    return bool(seeds)


if __name__ == "__main__":
    sys.exit(main())
