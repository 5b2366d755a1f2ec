"""The command line: parse, call one library function, print.

What a command needs is imported when the command runs, so that `--help` answers at once.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command `everview` with the arguments of this process."""
    from everview.cli.app import app  # noqa: PLC0415 - nothing is loaded that is not asked for

    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8")  # provenance has a · in it, and JSON is UTF-8 on every system
    app(prog_name="everview")
