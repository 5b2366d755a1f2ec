"""`everview sync`: with servers and folders, once or for as long as it runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from everview.cli.durations import seconds
from everview.cli.logs import warning_once
from everview.cli.options import Debug, Json, StoreOption, count, open_store, print_json, size
from everview.cli.peer_tokens import PeerTokens, reach_all
from everview.errors import EverviewError, SyncError

if TYPE_CHECKING:
    from everview.replication.transports.base import Transport
    from everview.replication.transports.report import SyncReport
    from everview.site import Site

__all__ = ["sync"]

_SHOWN = 3
"""So many files that were skipped are named."""

Peers = Annotated[
    list[str],
    typer.Argument(metavar="PEER...", help="Addresses (https://host:port) or folders.", show_default=False),
]
Authority = Annotated[
    Path | None,
    typer.Option(
        "--ca",
        metavar="FILE",
        help="Trust servers whose certificate this authority signed; else EVERVIEW_CA, else the system's.",
        show_default=False,
    ),
]


def sync(
    peers: Peers,
    *,
    store: StoreOption,
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on until stopped: sync after every commit.")
    ] = False,
    every: Annotated[
        str, typer.Option("--every", metavar="TIME", help="With --watch, sync at least this often.")
    ] = "5s",
    ca: Authority = None,
    peer_tokens: PeerTokens = None,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - its callback has taken note of it
) -> None:
    """Push and pull: afterwards this store and every peer agree on what both host.

    A server's token is taken from the environment variable EVERVIEW_TOKEN; the tokens of several servers from
    the file that --peer-tokens names.

    Example: everview sync --store rescue.db https://base.example:8443 /media/stick/rescue
    """
    pause = seconds(every)
    with warning_once(), open_store(store) as site, ExitStack() as stack:
        ways = reach_all(peers, ca=ca, tokens=peer_tokens)
        for way in ways:
            stack.callback(way.close)
        if watch:
            _go_on(site, ways, pause, as_json=as_json)
            return
        failed = [error for way in ways if (error := _once(site, way, as_json=as_json))]
        if failed:
            for error in failed[:-1]:
                typer.echo(f"error: {error}", err=True)
            raise failed[-1]


def _once(site: Site, way: Transport, *, as_json: bool) -> EverviewError | None:
    """Sync with one peer; an error keeps nobody else from being synced with."""
    from everview.cli.sync_meter import SyncMeter  # noqa: PLC0415

    try:
        with SyncMeter() as meter:
            report = site.sync(way, progress=meter)
    except EverviewError as error:
        if as_json:
            print_json({"peer": way.peer, "error": str(error), "retry": getattr(error, "retry", False)})
        if way.peer in str(error):
            return error
        return SyncError(f"cannot sync with {way.peer}: {error}", peer=way.peer)
    show_report(way.peer, report, as_json=as_json)
    _warn_of_namesake(site, way.peer)
    return None


def _warn_of_namesake(site: Site, address: str) -> None:
    """Names are labels, and two sites may have one; but tokens, owners and `why` go by them."""
    peers = site.replica.status()["peers"]
    former = set(site.replica.former)
    if site.name and any(
        one["address"] == address and one["name"] == site.name and one["incarnation"] not in former
        for one in peers
    ):
        typer.echo(
            f"warning: {address} is called {site.name}, too, and tokens, owners and `why` go by names; "
            "make one of the two anew with --name, or put it back from a backup by `everview restore --name`",
            err=True,
        )


def show_report(peer: str, report: SyncReport, *, as_json: bool, denied: bool = True) -> None:
    """Print what a sync moved, and what was not allowed."""
    if as_json:
        print_json({"peer": peer, **report_object(report)})
        return
    skipped = f"; {count(report.skipped_files, 'file')} skipped" if report.skipped_files else ""
    skipped += f": {_listed(report.skipped)}" if report.skipped else ""
    sys.stdout.write(
        f"{peer}: {count(report.received_rows, 'row')} received ({size(report.received_bytes)}), "
        f"{count(report.sent_rows, 'row')} sent ({size(report.sent_bytes)}){skipped}\n"
    )
    if denied and report.denied:
        sys.stdout.write(f"not allowed at {peer}: {report.told_denied()}\n")
    sys.stdout.flush()


def _listed(names: Sequence[str]) -> str:
    """The first few of many names."""
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def report_object(report: SyncReport) -> dict[str, Any]:
    """Return a report as JSON has it."""
    from dataclasses import asdict  # noqa: PLC0415

    return asdict(report)


def _go_on(site: Site, ways: list[Transport], pause: float, *, as_json: bool) -> None:
    from everview.cli.staying import staying  # noqa: PLC0415 - not needed for --help
    from everview.cli.stopping import until_stopped  # noqa: PLC0415

    with until_stopped() as stopped, staying(site, ways, pause, as_json=as_json):
        stopped.wait()
