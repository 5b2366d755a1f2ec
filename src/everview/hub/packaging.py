"""This package as an archive that Python imports from: what executors get from the driver.

The archive is the same, byte for byte, wherever it is made of the same sources: entries in order, with one
date, and not compressed, since every zlib compresses in its own way.
"""

from __future__ import annotations

import hashlib
import io
import uuid
import zipfile
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from everview.errors import StoreError

__all__ = ["ENTRY", "archive", "archive_name", "write_entry", "write_package"]

ENTRY = '''"""A hub as a Spark application: spark-submit --py-files everview.zip everview-hub.py --help"""

from everview.cli.submitting import main

if __name__ == "__main__":
    main()
'''
"""The script that spark-submit is given."""

_PACKAGE = "everview"
_DATE = (1980, 1, 1, 0, 0, 0)
_MODE = 0o100644


def archive() -> bytes:
    """The sources of this package, be it installed as a folder or imported from such an archive."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as package:
        for path, content in sorted(_sources(files(_PACKAGE), _PACKAGE)):
            entry = zipfile.ZipInfo(path, _DATE)
            entry.external_attr = _MODE << 16
            entry.create_system = 3  # Unix, wherever it is made
            package.writestr(entry, content)
    return made.getvalue()


def archive_name(content: bytes) -> str:
    """A name that no other archive has."""
    return f"{_PACKAGE}-{hashlib.sha256(content).hexdigest()[:16]}.zip"


def write_package(target: Path) -> int:
    """Write the archive, whole or not at all; how many bytes it has."""
    if target.suffix != ".zip":
        raise StoreError(f"{target} has to end in .zip, or Spark would not import from it", path=str(target))
    return _write(target, archive())


def write_entry(target: Path) -> int:
    """Write the script for spark-submit; how many bytes it has."""
    if target.suffix != ".py":
        raise StoreError(f"{target} has to end in .py, or spark-submit would not run it", path=str(target))
    return _write(target, ENTRY.encode())


def _sources(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        place = f"{path}/{entry.name}"
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _sources(entry, place)
        elif not entry.name.startswith(".") and not entry.name.endswith((".pyc", ".pyo")):
            yield place, entry.read_bytes()


def _write(target: Path, content: bytes) -> int:
    draft = target.parent / f".{uuid.uuid4().hex}"
    try:
        draft.write_bytes(content)
        draft.replace(target)
    except OSError as error:
        raise StoreError(f"cannot write {target}: {error.strerror}", path=str(target)) from error
    finally:
        draft.unlink(missing_ok=True)
    return len(content)
