"""Spark's parent of Python workers, with what they need imported before they are forked.

Spark's own imports next to nothing. So each worker imports for a second, and after each task looks for
garbage among all that it has imported, which takes longer than most tasks of a test. The one thread that
the imports start is jemalloc's, which knows about forks.
"""

import gc
import importlib
from contextlib import suppress

from pyspark.daemon import manager

NEEDED = (
    "numpy",
    "pandas",
    "pyarrow.compute",
    "pyarrow.parquet",
    "xxhash",
    "pyspark.worker",
    "everview.hub.large",
    "everview.hub.lookup",
    "everview.streams.pipelines.spark.tasks",
)

if __name__ == "__main__":
    for module in NEEDED:
        with suppress(ImportError):  # the Python of some tests has not all of them
            importlib.import_module(module)
    gc.freeze()
    manager()
