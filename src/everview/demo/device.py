"""A device's process: a site in a file, reachable over HTTP, that writes and syncs when it is told to.

`python -m everview.demo.device STORE PROGRAM NAME [HOSTED …]`
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from everview.console import Console, SiteSubject
from everview.demo.handset import Order, as_time, obey, read_rows
from everview.language.program import Program
from everview.server import Listener, SiteService
from everview.site import Site


def main(store: str, program: str, name: str, *hosts: str) -> None:
    """Serve the site and do what is said."""
    loaded = Program.load(program)
    with Site.open(store, loaded, name=name, hosts=set(hosts) or None) as site:

        def write(order: Order) -> int:
            with site.transaction():
                for relation, rows in order["rows"].items():
                    site.insert(relation, [_read(relation, row) for row in rows])
            return int(site.status()["commits"])

        def sync(order: Order) -> int:
            report = site.sync(order["peer"])
            return report.sent_rows + report.received_rows

        def close(order: Order) -> None:
            site.close_windows(as_time(order["until"]))

        def why(order: Order) -> dict[str, Any]:
            row = next(row for row in site.rows(order["view"]) if [str(v) for v in row] == order["row"])
            found = site.why(order["view"], row)
            witnesses = [
                {"relation": witness.relation, "values": witness.values, "origin": witness.origin}
                for witness in found.tuples()
            ]
            return {"tuples": witnesses}

        orders = {"write": write, "sync": sync, "close": close, "why": why, "rows": read_rows(site.rows)}
        console = Console(SiteSubject(site))
        with Listener(site.replica, service=SiteService(site.replica), pages=console) as listener:
            obey(orders, listener.address)


def _read(relation: str, row: Sequence[Any]) -> Sequence[Any]:
    if relation != "sightings":
        return row
    drone, at, *rest = row
    return drone, as_time(at), *rest


if __name__ == "__main__":
    main(*sys.argv[1:])
