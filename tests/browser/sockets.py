"""Who a process and its children talk to, and where they listen: read from Linux' /proc."""

from __future__ import annotations

import contextlib
import ipaddress
from pathlib import Path

PROC = Path("/proc")


def sockets_of(*processes: int) -> set[tuple[str, str]]:
    """The ends, here and there, of every TCP socket of these processes and of all that they started."""
    inodes: set[str] = set()
    for process in _family(set(processes)):
        with contextlib.suppress(OSError):
            for file in (PROC / str(process) / "fd").iterdir():
                with contextlib.suppress(OSError):
                    inodes.add(str(file.readlink()))
    found = set()
    for table in ("tcp", "tcp6"):
        for line in (PROC / "net" / table).read_text().splitlines()[1:]:
            words = line.split()
            if f"socket:[{words[9]}]" in inodes:
                found.add((_address(words[1]), _address(words[2])))
    return found


def _family(processes: set[int]) -> set[int]:
    """With all descendants."""
    parents = {}
    for status in PROC.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
    found = set(processes)
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def _address(text: str) -> str:
    """An address as the kernel writes it: words of four bytes, each in the machine's order."""
    host = bytes.fromhex(text.partition(":")[0])
    turned = b"".join(host[at : at + 4][::-1] for at in range(0, len(host), 4))
    address = ipaddress.ip_address(turned)
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)
