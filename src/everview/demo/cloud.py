"""The hub's process: the pipeline on a local Spark, and its HTTP server, as `everview hub` runs them.

`python -m everview.demo.cloud STORE PROGRAM`
"""

from __future__ import annotations

import sys

from everview.console import Console
from everview.console.hubs import HubSubject
from everview.demo.handset import Order, obey, read_rows
from everview.engines.spark.session import start_session
from everview.hub import Hub
from everview.language.program import Program
from everview.server import Listener
from everview.server.hubs import HubService

_CORES = 2


def main(store: str, program: str) -> None:
    """Run the pipeline and answer what is asked."""
    spark = start_session(master=f"local[{_CORES}]", app_name="everview demo")
    with Hub.open(store, Program.load(program), spark=spark, name="hub") as hub:
        service = HubService(hub, "200 milliseconds", lambda: None)
        console = Console(HubSubject(hub, service))

        def waiting(_order: Order) -> int:
            waits = hub.status().waiting
            return waits.writes + waits.commits

        service.start()
        try:
            with Listener(hub.replica, service=service, pages=console) as listener:
                obey({"rows": read_rows(hub.rows), "waiting": waiting}, listener.address)
        finally:
            service.stop()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
