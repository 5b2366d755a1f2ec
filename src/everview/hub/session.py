"""The session that a hub works in: one of its own beside the given one, which is left as it is.

Settings, functions, data sources, temporary views and streams belong to a session; so whatever a hub needs of
these, it has in its own. What a Spark application has only once is not touched, but for the names of the
hub's own jobs (see `jobs`) and, on a cluster, this package among the files of the application (`shipping`).
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from everview.engines.spark.by_python import register_functions
from everview.engines.spark.session import defaults, start_session
from everview.errors import StoreError
from everview.hub.shipping import ship

__all__ = ["hub_session", "is_connect"]


def hub_session(spark: SparkSession | None, hadoop: Mapping[str, str]) -> SparkSession:
    """A session with the settings that a hub's SQL and files need, of the given application or a local one.

    `hadoop` are those of its files.
    """
    given = spark if spark is not None else start_session()
    if is_connect(given):
        raise StoreError(
            "a hub cannot work through Spark Connect, which keeps it from the files of the application and "
            "from its tasks: open it with the session of a driver, such as SparkSession.builder.master(...) "
            "makes, or by spark-submit"
        )
    ship(given.sparkContext)
    session = given.newSession()
    for setting in defaults():
        if setting.name.startswith("spark.sql.") and session.conf.isModifiable(setting.name):
            session.conf.set(setting.name, setting.value)
    # Each shuffle would be a job of its own, and a refresh has many small ones.
    session.conf.set("spark.sql.adaptive.enabled", "false")
    if hadoop:
        # Spark shows settings and options that differ from its own, but for those whose names match this.
        session.conf.set("spark.sql.redaction.options.regex", r"(?i)url|^fs\.")
        for name, value in hadoop.items():
            session.conf.set(name, value)
    return register_functions(session)


def is_connect(given: object) -> bool:
    """Whether a session or a DataFrame is one of Spark Connect, whose modules may not even be importable."""
    return any(kind.__module__.startswith("pyspark.sql.connect.") for kind in type(given).__mro__)
