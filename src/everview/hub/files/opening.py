"""From a folder or URI to its files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from everview.errors import MissingDependencyError, StoreError
from everview.hub.files.address import SCHEMES
from everview.hub.files.interface import Files
from everview.hub.files.local import LocalFiles

__all__ = ["open_files"]


def open_files(uri: str | Path, options: Mapping[str, str] | None = None) -> Files:
    """The files at a folder or URI: plain paths, `file:`, and object stores (docs/OBJECT_STORES.md)."""
    text = str(uri)
    parts = urlsplit(text)
    if parts.scheme in SCHEMES and "://" in text:
        try:
            from everview.hub.files.objects import ObjectFiles  # noqa: PLC0415  (a folder needs no obstore)
        except ModuleNotFoundError as error:
            raise MissingDependencyError(
                f"a hub at {parts.scheme}:// needs {error.name}: pip install 'everview[hub]'"
            ) from error
        return ObjectFiles(text, options)
    if parts.scheme != "file" and "://" in text:
        known = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise StoreError(
            f"a hub cannot be kept at {parts.scheme}://: give a folder, or a URI of file://, {known}",
            path=text,
        )
    hadoop = {name.removeprefix("spark.hadoop."): value for name, value in (options or {}).items()}
    other = next((name for name in hadoop if not name.startswith("fs.")), None)
    if other is not None:
        raise StoreError(f"a hub in a folder has no option {other}: only Hadoop's, which begin with fs.")
    return LocalFiles(Path(unquote(parts.path) if parts.scheme == "file" else text), hadoop)
