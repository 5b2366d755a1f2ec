"""An `everview` that answers at once: a process that has loaded it already, and forks for every command.

Each command is still a process of its own, with the terminal, folder and environment of the shell that
typed it; half a second of imports is saved. What stays until Ctrl-C is started anew, since Ctrl-C reaches
only what the shell itself has started. The tutorial does without all this.
"""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

SHIM = """#!{python} -SEs
import json, os, socket, sys
if sys.argv[1] == "serve" or "--watch" in sys.argv:
    os.execv({python!r}, [{python!r}, "-m", "everview", *sys.argv[1:]])
with socket.socket(socket.AF_UNIX) as to:
    to.connect({address!r})
    said = json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(to, [len(said).to_bytes(4, "big")], [0, 1, 2])
    to.sendall(said)
    sys.exit(to.recv(1)[0])
"""


class Quick:
    """Puts an `everview` into a folder, for the beginning of PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        address = str(folder / "quick.socket")
        shim = folder / "everview"
        shim.write_text(SHIM.format(python=sys.executable, address=address))
        shim.chmod(0o755)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.docs.quick", address],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        assert self._process.stdout.readline() == "ready\n"

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def serve(address: str) -> None:
    import everview.cli.app
    import everview.cli.queries
    import everview.cli.tables
    import everview.site  # noqa: F401

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            to, _ = listener.accept()
            with to:
                length, ends, _, _ = socket.recv_fds(to, 4, 3)
                said = b""
                while len(said) < int.from_bytes(length, "big"):
                    said += to.recv(1 << 16)
                child = os.fork()
                if child == 0:
                    _run(ends, *json.loads(said))
                for end in ends:
                    os.close(end)
                to.send(bytes([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])]))


def _run(ends: list[int], words: list[str], folder: str, environ: dict[str, str]) -> None:
    """Be the command, in a process of its own."""
    for number, end in enumerate(ends):
        os.dup2(end, number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, closefd=False)  # noqa: SIM115 - they are there until it ends
        for number, mode in ((0, "r"), (1, "w"), (2, "w"))
    )
    sys.argv = words
    status: object = 0
    try:
        from everview.cli import main

        main()
    except SystemExit as ended:
        status = ended.code
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(int(status or 0))


if __name__ == "__main__":
    serve(sys.argv[1])
