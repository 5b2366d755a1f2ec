"""Which addresses of this machine somebody listens on."""

from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

_LISTENS = "0A"


def listening(port):
    """The addresses on which a port can be connected to, as the system's tables of sockets have them."""
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            _, place, _, state, *_ = line.split()
            digits, _, number = place.partition(":")
            if state == _LISTENS and int(number, 16) == port:
                found.add(_address(digits))
    return sorted(found)


def _address(digits):
    """Written in words of four bytes, each of them in the order of the machine, here little end first."""
    content = b"".join(bytes.fromhex(digits[start : start + 8])[::-1] for start in range(0, len(digits), 8))
    if len(content) == 4:
        return str(IPv4Address(content))
    address = IPv6Address(content)
    return str(address.ipv4_mapped or address)
