"""Repairs: a relation whose rows differ although both have seen the same is read again from who is right."""

from __future__ import annotations

import os

from everview.errors import DataError
from everview.replication.protocol.replica import Replica
from everview.replication.status.status import subject_of
from everview.replication.transports.folder.transport import FolderTransport
from everview.replication.transports.reach import Peer, is_address, sync_with
from everview.replication.transports.report import SyncReport

__all__ = ["repair_with"]


def repair_with(
    replica: Replica,
    relation: str,
    peer: Peer,
    *,
    token: str | None = None,
    ca: str | os.PathLike[str] | None = None,
) -> SyncReport:
    """Read a relation or view again, whole, from a peer; return what that moved."""
    streams = [stream for stream in replica.shares if subject_of(stream) == relation]
    if not streams:
        raise DataError(f"{relation} is computed here, from other relations: repair those", relation=relation)
    named = os.fspath(peer) if isinstance(peer, str | os.PathLike) else None
    if isinstance(peer, FolderTransport) or (named is not None and not is_address(named)):
        raise DataError("files in a folder do not say which rows are right; name a server or a site")
    report = sync_with(replica, peer, token=token, ca=ca)
    with replica.repairing(streams):
        return report + sync_with(replica, peer, token=token, ca=ca)
