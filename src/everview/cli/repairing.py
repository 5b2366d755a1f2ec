"""`everview repair`: reading a relation again, whole, from a peer that is right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from everview.cli.either import HubName, HubProgram, SiteOrHub, open_either
from everview.cli.options import Debug, Json
from everview.cli.peer_tokens import PeerTokens, reach_all
from everview.cli.syncing import Authority, show_report

if TYPE_CHECKING:
    from everview.replication.protocol.replica import Replica

__all__ = ["repair"]


def repair(
    store: SiteOrHub,
    relation: Annotated[
        str, typer.Argument(metavar="RELATION", help="The relation or view.", show_default=False)
    ],
    *,
    peer: Annotated[
        str,
        typer.Option(
            "--from", metavar="PEER", help="The server that is right (https://host:port).", show_default=False
        ),
    ],
    program: HubProgram = None,
    name: HubName = "hub",
    ca: Authority = None,
    peer_tokens: PeerTokens = None,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - its callback has taken note of it
) -> None:
    """Read a relation again, whole, from a peer that is right.

    It is for when `everview status` or `doctor` has an alarm: two stores have seen the same rows, and hold
    different ones. Rows here that the peer has seen and does not hold are removed.

    Example: everview repair rescue.db visit --from https://base.example:8440
    """
    with open_either(store, program, name) as opened:
        (way,) = reach_all([peer], ca=ca, tokens=peer_tokens)
        try:
            report = opened.repair(relation, way)
        finally:
            way.close()
        show_report(peer, report, as_json=as_json)
        _say_what_differs(opened.replica, relation)


def _say_what_differs(replica: Replica, relation: str) -> None:
    """An alarm that is left is one of another peer: this store, or that one, is still wrong."""
    from everview.replication.status.status import subject_of  # noqa: PLC0415 - not needed for --help

    for alarm in replica.status()["alarms"]:
        if subject_of(alarm["relation"]) == relation:
            typer.echo(f"warning: {relation} still differs from that of {alarm['peer']}", err=True)
