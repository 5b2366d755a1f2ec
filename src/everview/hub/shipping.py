"""How executors come by this package: from the driver, which adds it to the files of its application.

On a master that is not local it is always sent, once for an application, also where executors have the
package installed: what comes from the driver goes before that, and so all of them run the same version. It is
2 MB for each executor. A driver that has itself got the package by --py-files has nothing to send.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import re
import shutil
import sys
import tempfile
import threading
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from pyspark import SparkContext, SparkFiles

from everview.hub.packaging import archive, archive_name

__all__ = ["is_local", "ship"]

_shipping = threading.Lock()


def ship(context: SparkContext) -> None:
    """See to it that the executors of an application find this package."""
    if is_local(context.master or "") or _came_with(context):
        return
    with _shipping:
        path = _made()
        if path.name in {PurePosixPath(urlsplit(uri).path).name for uri in context.listFiles}:
            return
        context.addPyFile(str(path))
        # It is for executors; the driver goes on with the package that it has.
        copy = str(Path(SparkFiles.getRootDirectory(), path.name))
        if copy in sys.path:
            sys.path.remove(copy)


def is_local(master: str) -> bool:
    """Whether tasks run in the driver's own process and machine."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def _came_with(context: SparkContext) -> bool:
    """Whether the driver imports the package from an archive that spark-submit gave to everyone."""
    origin = importlib.import_module("everview").__file__ or ""
    given = context.getConf().get("spark.submit.pyFiles", "") or ""
    names = {PurePosixPath(urlsplit(uri).path).name for uri in given.split(",") if uri}
    return any(part in names for part in Path(origin).parts)


@functools.cache
def _made() -> Path:
    """The archive, where executors that come later find it too: as long as this process lives."""
    folder = Path(tempfile.mkdtemp(prefix="everview-package-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    content = archive()
    path = folder / archive_name(content)
    path.write_bytes(content)
    return path
