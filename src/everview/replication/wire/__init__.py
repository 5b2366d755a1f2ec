"""The wire format: messages as bytes (docs/PROTOCOL.md), and the check that they hold what a store holds."""

from everview.replication.wire.checks import check
from everview.replication.wire.codec import LIMIT, decode, encode

__all__ = ["LIMIT", "check", "decode", "encode"]
