"""The files of a hub behind one small interface; nothing else in `hub/` touches a file system."""

from everview.hub.files.interface import Entry, Files, LockedError
from everview.hub.files.local import LocalFiles
from everview.hub.files.opening import open_files

__all__ = ["Entry", "Files", "LocalFiles", "LockedError", "open_files"]
