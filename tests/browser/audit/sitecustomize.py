"""Notes, in the file EVERVIEW_ASKED, every address that this Python asks; run by Python as it starts."""

import os
import sys

_FILE = os.environ.get("EVERVIEW_ASKED")


def _note(event, arguments):
    if event == "socket.connect":
        address = arguments[1]
    elif event == "socket.getaddrinfo":
        address = arguments[:2]
    else:
        return
    if isinstance(address, tuple):  # the others are files, of this machine by their kind
        noted = os.open(_FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(noted, f"{address[0]}\n".encode())
        os.close(noted)


if _FILE:
    sys.addaudithook(_note)
