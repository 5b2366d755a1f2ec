"""How executors come by this package: from the driver, which adds it to the files of its application.

On a master that is not local it is always sent, once for an application, also where executors have the
package installed: what comes from the driver goes before that, and so all of them run the same version. It is
2 MB for each executor. A driver that has itself got the package by --py-files has nothing to send.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from pyspark import SparkContext, SparkFiles

from everview.hub.packaging import archive, archive_name

__all__ = ["findable", "is_local", "ship"]

_shipping = threading.Lock()


def ship(context: SparkContext) -> None:
    """See to it that the executors of an application find this package."""
    if is_local(context.master or "") or _archive_of_driver(context):
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


@contextmanager
def findable(context: SparkContext) -> Iterator[None]:
    """See to it that the sources of data that are registered meanwhile find this package too.

    Spark asks a source for its offsets in processes of the driver's machine, which run the executors' Python
    and have not the driver's packages. They look where PYTHONPATH says.
    """
    if is_local(context.master or ""):
        yield
        return
    path = _archive_of_driver(context) or str(_made())
    before = context.environment.get("PYTHONPATH")
    context.environment["PYTHONPATH"] = os.pathsep.join(filter(None, (path, before)))
    try:
        yield
    finally:
        del context.environment["PYTHONPATH"]
        if before is not None:
            context.environment["PYTHONPATH"] = before


def is_local(master: str) -> bool:
    """Whether tasks run in the driver's own process and machine."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def _archive_of_driver(context: SparkContext) -> str:
    """The archive that the driver imports the package from, if spark-submit gave it to all; or empty."""
    origin = importlib.import_module("everview").__file__ or ""
    given = context.getConf().get("spark.submit.pyFiles", "") or ""
    names = {PurePosixPath(urlsplit(uri).path).name for uri in given.split(",") if uri}
    return next((str(place) for place in Path(origin).parents if place.name in names), "")


@functools.cache
def _made() -> Path:
    """The archive, where executors that come later find it too: as long as this process lives."""
    folder = Path(tempfile.mkdtemp(prefix="everview-package-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    content = archive()
    path = folder / archive_name(content)
    path.write_bytes(content)
    return path
