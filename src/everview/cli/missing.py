"""What to say of a file that is not there: the one that was probably meant, or what is wanted."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

__all__ = ["missing_file"]


def missing_file(path: Path, wanted: str) -> str:
    """That a file does not exist or is none, and what to do."""
    if path.exists():
        return f"{path} is no file; {wanted}"
    folder = path.parent
    if not folder.is_dir():
        return f"{path} does not exist, nor does the folder {folder}; {wanted}"
    alike = {one.stem: one for one in folder.iterdir() if one.is_file() and one.suffix == path.suffix}
    close = get_close_matches(path.stem, alike, n=1)
    return f"{path} does not exist; " + (f"did you mean {alike[close[0]]}?" if close else wanted)
