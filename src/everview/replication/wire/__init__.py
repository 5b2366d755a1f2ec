"""The wire format: messages as bytes (docs/PROTOCOL.md), and the check that they hold what a store holds."""

from everview.replication.wire.checks import check
from everview.replication.wire.codec import LARGEST_MESSAGE, LIMIT, decode, encode

__all__ = ["LARGEST_MESSAGE", "LIMIT", "check", "decode", "encode"]
