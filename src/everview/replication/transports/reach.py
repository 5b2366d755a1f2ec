"""Which transport leads to a peer, told by how the peer is named."""

from __future__ import annotations

import os
import re
from contextlib import closing
from pathlib import Path
from typing import Protocol, cast, runtime_checkable

from everview.errors import SyncError
from everview.replication.transports.base import Replica, Transport
from everview.replication.transports.folder.transport import FolderTransport
from everview.replication.transports.report import OnProgress, SyncReport

__all__ = ["TOKEN_VARIABLE", "Peer", "Reachable", "is_address", "reach", "sync_with"]

TOKEN_VARIABLE = "EVERVIEW_TOKEN"  # noqa: S105 - the name of a variable
CA_VARIABLE = "EVERVIEW_CA"
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
BARE_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9.-]{2,}):[0-9]{1,5}/?")
"""A host and a port without what comes before them; a folder would hardly be called so."""


@runtime_checkable
class Reachable(Protocol):
    """What is open in this process and is talked with by calls: a site, a hub."""

    def transport(self, on_progress: OnProgress | None = None) -> Transport:
        """Return the way to it; `on_progress` is told if it takes a while until there is one."""


Peer = Reachable | Transport | str | os.PathLike[str]
"""Whom to sync with: what is open here, a way to it, a URL or a folder."""


def sync_with(
    replica: Replica,
    peer: Peer,
    *,
    token: str | None = None,
    ca: str | os.PathLike[str] | None = None,
    progress: OnProgress | None = None,
) -> SyncReport:
    """Bring a replica and a peer to agreement."""
    if isinstance(peer, str | os.PathLike):
        with closing(reach(peer, token=token, ca=ca)) as transport:
            return transport.sync(replica, on_progress=progress)
    if isinstance(peer, Reachable):
        peer = peer.transport(progress)
    if not hasattr(peer, "sync"):
        raise SyncError(f"{peer!r} is no peer; name a site, a hub, a URL or a folder", peer=repr(peer))
    return peer.sync(replica, on_progress=progress)


def is_address(peer: str) -> bool:
    """Whether a peer is named by an address, and not by a folder."""
    return SCHEME.match(peer) is not None


def reach(
    peer: str | os.PathLike[str], *, token: str | None = None, ca: str | os.PathLike[str] | None = None
) -> Transport:
    """Return the way to an address or a folder.

    The token comes from EVERVIEW_TOKEN when none is given, the authority's certificate from EVERVIEW_CA.
    """
    name = os.fspath(peer)
    if "\0" in name:
        raise SyncError(f"{name!r} is no name of a folder", peer=name)
    if not name:
        raise SyncError("an empty name leads to no peer; give a URL or a folder", peer="")
    scheme = SCHEME.match(name)
    if scheme is None and isinstance(peer, str) and BARE_ADDRESS.fullmatch(name) and not Path(name).exists():
        raise SyncError(
            f"{name} is an address without its beginning: say http://{name} or https://{name}, "
            f"or ./{name} for a folder",
            peer=name,
        )
    if scheme is None or not isinstance(peer, str):
        return cast("Transport", FolderTransport(Path(name)))  # it asks a store for its files
    if scheme[1].lower() not in ("http", "https"):
        raise SyncError(f"{name}: peers are reached by http:// or https://, or in a folder", peer=name)
    # The client takes a tenth of a second to load; a folder does without.
    from everview.replication.transports.http import HttpTransport  # noqa: PLC0415

    return HttpTransport(
        name,
        token=token if token is not None else os.environ.get(TOKEN_VARIABLE),
        ca=Path(ca) if ca is not None else os.environ.get(CA_VARIABLE) or None,
    )
