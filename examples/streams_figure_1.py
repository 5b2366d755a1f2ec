"""Streams, Figure 1 and Table 1: six sites, one relation, and views that are fed over any path.

    s0: R0  <───>  s1: R0             R0(A, B, C), written at both
     │     ╲      ╱    │
     │      s4: R4     │              R4 = π BC (R0), asked of s0 or of s1
     │         │       │
    s2: R2     │      s3: R3          R2, R3 = π AB (R0), each from its own side
      ╲        │      ╱
       ╲       │     ╱
          s5: R5                      R5 = (R2 or R3) ⋈ R4

Run it: `python examples/streams_figure_1.py`. With θ = θ' = true R2 and R3 say the same of R0;
here they are one view, r2, which s2 gets from s0, and s3 from s1. Derivations name the tuples of R0 that they
were made from, and a tuple's causal length decides over all of them, whichever way it came.
"""

from __future__ import annotations

import sys

import everview as ev

PROGRAM = ev.Program.parse("""
    CREATE TABLE r0 (a TEXT NOT NULL, b TEXT NOT NULL, c TEXT NOT NULL);
    CREATE MATERIALIZED VIEW r2 AS SELECT DISTINCT a, b FROM r0;
    CREATE MATERIALIZED VIEW r4 AS SELECT DISTINCT b, c FROM r0;
    CREATE MATERIALIZED VIEW r5 AS SELECT r2.a, r2.b, r4.c FROM r2 JOIN r4 ON r2.b = r4.b;
""")

HOSTS = {
    "s0": {"r0"},
    "s1": {"r0"},
    "s2": {"r2"},
    "s3": {"r2"},
    "s4": {"r4"},
    "s5": {"r5"},
}
SHOWN = {
    "s0": ("R0", "r0"),
    "s1": ("R0", "r0"),
    "s2": ("R2", "r2"),
    "s3": ("R3", "r2"),
    "s4": ("R4", "r4"),
    "s5": ("R5", "r5"),
}
"""What Table 1 shows of each site: the paper's name, and ours."""

PATHS = [("s0", "s1"), ("s2", "s0"), ("s3", "s1"), ("s4", "s0"), ("s4", "s1")]
PATHS += [("s5", "s2"), ("s5", "s3"), ("s5", "s4")]

FIRST, SECOND = ("a1", "b1", "c1"), ("a2", "b1", "c1")

Row = tuple[str, ...]
State = dict[str, list[Row]]

ONE: State = {
    "s0": [FIRST],
    "s1": [FIRST],
    "s2": [("a1", "b1")],
    "s3": [("a1", "b1")],
    "s4": [("b1", "c1")],
    "s5": [FIRST],
}
BOTH: State = {
    "s0": [FIRST, SECOND],
    "s1": [FIRST, SECOND],
    "s2": [("a1", "b1"), ("a2", "b1")],
    "s3": [("a1", "b1"), ("a2", "b1")],
    "s4": [("b1", "c1")],
    "s5": [FIRST, SECOND],
}


class Sites:
    """The six sites, and what went wrong."""

    def __init__(self) -> None:
        self.by_name = {
            name: ev.Site.open(":memory:", PROGRAM, name=name, hosts=hosts) for name, hosts in HOSTS.items()
        }
        self.wrong = 0

    def __getitem__(self, name: str) -> ev.Site:
        return self.by_name[name]

    def meet(self, *paths: tuple[str, str]) -> None:
        """Let pairs of sites sync, in this order."""
        for one, other in paths:
            self[one].sync(self[other])

    def spread(self) -> None:
        """Let everybody hear of everything: the longest path has three hops, and each is taken twice."""
        for _ in range(2):
            self.meet(*PATHS)

    def show(self, story: str, **expected: list[Row]) -> None:
        """Print what each site shows, and check those of which something is expected."""
        print(f"\n{story}")
        for name, (title, shown) in SHOWN.items():
            rows = self[name].rows(shown)
            fine = rows == expected.get(name, rows)
            self.wrong += not fine
            said = "  ".join(f"⟨{', '.join(row)}⟩" for row in rows) or "–"
            print(f"  {title}@{name}  {said}" + ("" if fine else f"   expected {expected[name]}"))

    def close(self) -> None:
        """Close all of them."""
        for site in self.by_name.values():
            site.close()


def table_1(sites: Sites) -> None:
    """An insertion and a deletion in R0, and every view after each."""
    sites["s0"].insert("r0", [FIRST])
    sites.spread()
    sites.show("Table 1: the initial states", **ONE)
    sites["s0"].insert("r0", [SECOND])
    sites.spread()
    sites.show("after ⟨a2, b1, c1⟩ was inserted at s0: R4 is unchanged, it has ⟨b1, c1⟩ already", **BOTH)
    sites["s0"].delete("r0", [SECOND])
    sites.spread()
    sites.show("after it was deleted: R4 is unchanged again, ⟨a1, b1, c1⟩ still supports ⟨b1, c1⟩", **ONE)


def conflicts(sites: Sites) -> None:
    """Section 2: what a counter cannot tell."""
    sites["s0"].insert("r0", [SECOND])
    sites.spread()
    sites["s0"].delete("r0", [SECOND])
    sites.meet(("s0", "s1"), ("s4", "s0"), ("s4", "s1"))
    sites.show("1. s4 hears of one deletion from s0, and then again from s1: it counts once", s4=ONE["s4"])
    sites.spread()

    third = ("a3", "b1", "c3")
    sites["s0"].insert("r0", [third])
    sites["s1"].insert("r0", [third])
    sites["s1"].delete("r0", [third])
    sites.meet(("s4", "s1"), ("s4", "s0"))
    sites.show("2. s0 inserts; s1 inserts the same and deletes it: at s4 the deletion wins", s4=ONE["s4"])

    sites.meet(("s2", "s0"), ("s5", "s2"))
    told: list[Row] = [("a1", "b1"), ("a3", "b1")]
    sites.show("3. s2 brings the insertion to s5: it has R2's ⟨a3, b1⟩", s2=told)
    sites.meet(("s3", "s1"), ("s5", "s3"))
    sites.show("   s3 brings the deletion: s5 knows better than s2, and shows no union", s2=told, s5=[FIRST])
    sites.meet(("s5", "s2"))
    sites.show(
        "   s5 meets s2 again, and s2 hears from it what s0 does not know yet", s2=ONE["s2"], s5=[FIRST]
    )
    sites.spread()
    sites.show("   and when all have talked", **ONE)


def main() -> int:
    """Run all of it; return 0 if every site showed what the paper says."""
    sites = Sites()
    table_1(sites)
    conflicts(sites)
    print(f"\nWhy ⟨a1, b1, c1⟩ is at s5, which has no base relation: {sites['s5'].why('r5', FIRST)}")
    moved = [sites[one].sync(sites[other]) for one, other in PATHS]
    quiet = not any(report.sent_rows + report.received_rows for report in moved)
    sites.close()
    fine = not sites.wrong and quiet
    print("\nEvery site shows what the paper says, and nothing is left to send." if fine else "\nWRONG")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
