"""A path-vector protocol in four rules: twenty sites in a ring with chords, and links that fail and return.

Every site knows its own links, and no more. Two sites talk only while the link between them is up. From what
its neighbours tell, each makes its routing table: all paths of a few hops that visit no site twice, and the
best of them. A link that fails is a fact that dies; what was made from it dies wherever that has got to, and
nothing is made anew when it returns. After each change all tables together are what one site that knew
everything would compute, also where failures have cut the network in two.

Run it: `python examples/path_vector.py [picture.svg]`. It draws the network as it was at the end.
"""

from __future__ import annotations

import math
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import everview as ev
from everview.located import LocatedProgram, ProvenanceNode, open_node

RULES = """
.decl link(@s: symbol, d: symbol)
.decl path(@s: symbol, d: symbol, vector: symbol, hops: number)
path(@s, d, cat(s, " ", d), 1) :- link(@s, d).
path(@s, d, cat(s, " ", v), n + 1) :-
    link(@s, z), path(@z, d, v, n), strpos(v, s) = 0, n < HOPS, strlen(v) < 1000.
"""

ROUTES = """
CREATE MATERIALIZED VIEW "route@{place}" AS
    SELECT d, vector, hops FROM (
        SELECT d, vector, hops, row_number() OVER (PARTITION BY d ORDER BY hops, vector) AS place
        FROM "path@{place}"
    ) AS ranked WHERE place = 1;
"""
"""The routing table proper: the shortest path to each site, of several the first by name."""

Link = tuple[str, str]


class Network:
    """Sites in a ring with chords; links between them that are up or down; and one that knows everything."""

    def __init__(self, sites: int = 20, chords: int = 5, hops: int = 7, seed: int = 7) -> None:
        self.rng = random.Random(seed)
        self.names = [f"s{number:02}" for number in range(sites)]
        self.links = self._ring(chords)
        self.up = set(self.links)
        rules = RULES.replace("HOPS", str(hops))
        self.program = LocatedProgram.parse(rules, self.names, views=ROUTES)
        self.sites: dict[str, ev.Site] = {}
        self.nodes: dict[str, ProvenanceNode] = {}
        for name in self.names:
            near = {end for link in self.links if name in link for end in link}
            hosts = self.program.hosts(name, near)
            self.sites[name] = ev.Site.open(":memory:", self.program.program, name=name, hosts=hosts)
            self.nodes[name] = open_node(self.sites[name], self.program)
        self.everything = ev.Site.open(":memory:", ev.Program.parse(rules, language="datalog"))
        for link in self.links:
            self._write(link, up=True)

    def _ring(self, chords: int) -> list[Link]:
        count = len(self.names)
        ring = [(self.names[at], self.names[(at + 1) % count]) for at in range(count)]
        far = [
            (a, b)
            for at, a in enumerate(self.names)
            for b in self.names[at + 2 :]
            if (self.names.index(b) - at) % count not in (1, count - 1)
        ]
        return [(a, b) if a < b else (b, a) for a, b in (*ring, *self.rng.sample(far, chords))]

    def _write(self, link: Link, *, up: bool) -> None:
        """Both ends notice, each by itself."""
        for one, other in (link, link[::-1]):
            (self.nodes[one].insert if up else self.nodes[one].delete)("link", [(one, other)])
            (self.everything.insert if up else self.everything.delete)("link", [(one, other)])

    def turn(self, link: Link) -> None:
        """A link fails, or returns."""
        self.up ^= {link}
        self._write(link, up=link in self.up)

    def any_link(self) -> Link:
        """A link to turn: the more are down, the likelier one that returns."""
        down = [link for link in self.links if link not in self.up]
        returns = self.rng.random() < len(down) / 6
        return self.rng.choice(down if returns else sorted(self.up))

    def settle(self) -> tuple[int, int]:
        """Sites talk over the links that are up until nobody has news; return rows and bytes that moved."""
        rows = size = 0
        while True:
            moved = 0
            for one, other in sorted(self.up):
                report = self.sites[one].sync(self.sites[other])
                moved += report.sent_rows + report.received_rows
                size += report.sent_bytes + report.received_bytes
            rows += moved
            if not moved:
                return rows, size

    def check(self) -> int:
        """Compare all tables with those of the site that knows everything; return how many paths."""
        paths = [row for node in self.nodes.values() for row in node.rows("path")]
        expected = self.everything.rows("path")
        if sorted(paths) != expected:
            raise AssertionError(f"{len(set(paths) ^ set(expected))} paths are not what they should be")
        return len(paths)

    def routes(self, name: str) -> list[tuple[Any, ...]]:
        """The routing table of a site: destination, path, hops."""
        return self.sites[name].rows(f"route@{name}")

    def close(self) -> None:
        """Close all sites."""
        for site in (*self.sites.values(), self.everything):
            site.close()


def run(network: Network, changes: int) -> Iterator[str]:
    """Let links fail and return at random, up to three at once, and check after each time."""
    began = time.perf_counter()
    rows, _ = network.settle()
    paths = network.check()
    yield f"{len(network.names)} sites, {len(network.links)} links: {paths:,} paths, {rows:,} rows moved"
    yield f"first tables after {time.perf_counter() - began:.1f} s"
    for change in range(1, changes + 1):
        turned = dict.fromkeys(network.any_link() for _ in range(network.rng.choice([1, 1, 2, 3])))
        for link in turned:
            network.turn(link)
        said = ", ".join(f"{a}–{b} {'is back' if (a, b) in network.up else 'fails'}" for a, b in turned)
        began = time.perf_counter()
        rows, _ = network.settle()
        took = time.perf_counter() - began
        yield f"{change:3} {said}: {network.check():,} paths, {rows:,} rows moved, {took:.1f} s"


SIZE, RADIUS, FOOT = 640, 255, 62
"""The picture: the square that the ring is drawn in, the ring itself, and what is below for the legend."""

STYLE = (
    "text{font:11px sans-serif;text-anchor:middle;fill:#fff}.paper{fill:#fff}"
    "line,path{stroke-width:1.5;stroke:#9aa5b1}"
    ".route{stroke-width:4;stroke:#2f6f9f}.down{stroke:#c0392b;stroke-dasharray:5 4}"
    "circle{stroke:#fff;stroke-width:2}.self{fill:#c77d1e}.lost{fill:#9aa5b1}"
    ".say{fill:#333;font-size:13px}.key{fill:#333;font-size:12px;text-anchor:start}"
)
SHADES = ("#16324d", "#1f4a6d", "#2f6f9f", "#4d8dbd", "#74aad0", "#9cc3df", "#bfd8ea")
"""The colour of a site by how many hops it is away, from the first on."""


def picture(network: Network, name: str) -> str:
    """The network as SVG: routes from one site are thick, links that are down dashed, far sites pale."""
    middle, count = SIZE / 2, len(network.names)
    at = {
        site: (
            middle + RADIUS * math.sin(2 * math.pi * number / count),
            middle - RADIUS * math.cos(2 * math.pi * number / count),
        )
        for number, site in enumerate(network.names)
    }
    used = {
        tuple(sorted(pair))
        for _, vector, _ in network.routes(name)
        for pair in zip(vector.split(), vector.split()[1:], strict=False)
    }
    reached = {destination: hops for destination, _, hops in network.routes(name)} | {name: 0}
    parts = [f'<rect class="paper" width="{SIZE}" height="{SIZE + FOOT}" rx="8"/>']
    for kind, (a, b) in sorted((_kind(link, used, network.up), link) for link in network.links):
        (x1, y1), (x2, y2) = at[a], at[b]
        line = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
        parts.append(f'<line class="{kind}" {line}><title>{a}–{b}: {SAID[kind]}</title></line>')
    for site, (x, y) in at.items():
        parts.append(_site(site, name, x, y, reached.get(site)))
    links = f"{len(network.up)} of {len(network.links)} links are up"
    said = f"Routes from {name} to {len(reached) - 1} of {count - 1} sites, the nearer the darker; {links}"
    parts.append(f'<text class="say" x="{middle}" y="{SIZE + 2}">{said}</text>')
    for number, (kind, words) in enumerate(SAID.items()):
        x, y = 112 + 160 * number, SIZE + 34
        parts.append(
            f'<path class="{kind}" d="M{x} {y}h34"/><text class="key" x="{x + 42}" y="{y + 4}">{words}</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE} {SIZE + FOOT}">'
        f"<style>{STYLE}</style>{''.join(parts)}</svg>\n"
    )


SAID = {"route": "on a route", "up": "up, on no route", "down": "down"}


def _kind(link: Link, used: set[Any], up: set[Link]) -> str:
    return "route" if link in used else "up" if link in up else "down"


def _site(site: str, name: str, x: float, y: float, hops: int | None) -> str:
    """A disc with the site's name; the farther away it is, the paler."""
    said = f"no path from {name}" if hops is None else f"hops from {name}: {hops}"
    kind, fill, ink = "near", "", ""
    if hops is None or not hops:
        kind = "lost" if hops is None else "self"
    else:
        shade = min(hops, len(SHADES)) - 1
        fill = f' fill="{SHADES[shade]}"'
        ink = ' style="fill:#16324d"' if shade > 3 else ""
    return (
        f'<circle class="{kind}"{fill} cx="{x:.1f}" cy="{y:.1f}" r="18"><title>{said}</title></circle>'
        f'<text x="{x:.1f}" y="{y + 4:.1f}"{ink}>{site}</text>'
    )


def main() -> None:
    """Run the network, and draw it."""
    to = Path(sys.argv[1] if len(sys.argv) > 1 else "path_vector.svg")
    network = Network()
    for line in run(network, changes=15):
        print(line, flush=True)
    to.write_text(picture(network, network.names[0]), encoding="utf-8")
    print(f"routes of {network.names[0]}:")
    for destination, vector, hops in network.routes(network.names[0])[:5]:
        print(f"  {destination}: {vector} ({hops} {'hop' if hops == 1 else 'hops'})")
    print(f"the network is drawn in {to}")
    network.close()


if __name__ == "__main__":
    main()
