"""Where an object store is: one URI as a user gives it, and as object_store, `deltalake` and Spark say it."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from everview.errors import StoreError

__all__ = ["SCHEMES", "Address", "parse_address"]

SCHEMES = {"s3": "s3", "s3a": "s3", "gs": "gs", "az": "az", "azure": "az", "abfs": "az", "abfss": "az"}
"""How a URI begins → which kind of store that is."""

_AZURE = "dfs.core.windows.net"


@dataclass(frozen=True, slots=True)
class Address:
    """A place in an object store: its kind, the bucket or container, and the prefix of a hub's objects.

    `account` is that of an Azure URI which names one.
    """

    kind: str
    bucket: str
    prefix: str
    account: str = ""

    def __str__(self) -> str:
        """The URI as object_store and `deltalake` say it."""
        return self.at("")

    def at(self, path: str) -> str:
        """The URI of a path below it."""
        return "/".join(part for part in (f"{self.kind}://{self.bucket}", self.prefix, path) if part)

    def in_spark(self, account: str) -> str:
        """The URI as Hadoop says it."""
        match self.kind:
            case "s3":
                start = f"s3a://{self.bucket}"
            case "az":
                start = f"abfss://{self.bucket}@{account}.{_AZURE}"
            case _:
                start = f"{self.kind}://{self.bucket}"
        return f"{start}/{self.prefix}" if self.prefix else start


def parse_address(uri: str) -> Address | None:
    """The place that a URI names; None when it names none in an object store."""
    parts = urlsplit(uri)
    kind = SCHEMES.get(parts.scheme)
    if kind is None:
        return None
    # Of what stands before an @ only Azure's container is no secret.
    container, at, host = parts.netloc.rpartition("@")
    if at and kind != "az":
        raise StoreError(
            f"a URI of {kind}:// has no name and password: give them as options (docs/OBJECT_STORES.md)"
        )
    if parts.query or parts.fragment:
        raise StoreError(f"{kind}://{host} has a ? or # in its URI: give options as options", path=uri)
    if not host:
        raise StoreError(f"{uri} names no bucket: write {parts.scheme}://bucket/folder", path=uri)
    prefix = unquote(parts.path).strip("/")
    if at:
        return Address(kind, container, prefix, host.partition(".")[0])
    return Address(kind, host, prefix)
