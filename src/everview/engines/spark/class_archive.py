"""An archive of the Java classes that a hub loads: with it Spark starts in half the time.

    python -m everview.engines.spark.class_archive spark.jsa
    EVERVIEW_CLASS_ARCHIVE=spark.jsa everview hub ...

It is Java's own class data sharing. An archive is good for the same Java and the same Spark; any other passes
it over, and starts as it would without one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from everview.errors import StoreError

__all__ = ["make_archive"]

_SECONDS = 300

_SCRIPT = """
import sys
import everview as ev
from everview.engines.spark.session import start_session

archive, folder = sys.argv[1:]
options = f"-XX:ArchiveClassesAtExit={archive} -XX:TieredStopAtLevel=1 -Xlog:cds*=off"
spark = start_session(master="local[1]", settings={"spark.driver.extraJavaOptions": options})
program = ev.Program.parse(
    "CREATE TABLE a (x BIGINT PRIMARY KEY, y TEXT, z DOUBLE, t TIMESTAMP);"
    "CREATE TABLE b (x BIGINT, w DECIMAL(9,2));"
    "CREATE MATERIALIZED VIEW v AS SELECT y, count(*) AS n, sum(w) AS w, max(z) AS z"
    " FROM a JOIN b USING (x) GROUP BY y;"
    "CREATE MATERIALIZED VIEW d AS SELECT DISTINCT y FROM a WHERE x NOT IN (SELECT x FROM b);"
)
with ev.Hub.open(folder, program, spark=spark) as hub:
    for number in range(2):
        hub.insert("a", [(number, "y", 1.5, None)])
        hub.insert("b", spark.range(9).selectExpr("id AS x", "CAST(id AS DECIMAL(9,2)) AS w"))
        hub.refresh()
    hub.rows("v")
    hub.publish()
gateway = spark.sparkContext._gateway
spark.stop()
gateway.shutdown()
gateway.proc.stdin.close()
gateway.proc.wait(120)
"""


def make_archive(path: Path) -> None:
    """Run a small hub, and have its Java write down what it has loaded; StoreError if that does not work."""
    part = path.absolute().with_name(f"{path.name}.{os.getpid()}.part")
    with tempfile.TemporaryDirectory(prefix="everview-") as folder:
        done = subprocess.run(  # noqa: S603 - our own script, in this interpreter
            [sys.executable, "-c", _SCRIPT, str(part), folder],
            env={name: value for name, value in os.environ.items() if name != "EVERVIEW_CLASS_ARCHIVE"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
    if done.returncode or not part.exists():
        part.unlink(missing_ok=True)
        said = (done.stdout.strip().splitlines() or ["Java wrote nothing"])[-1]
        raise StoreError(f"{path} cannot be made: {said}", path=str(path))
    part.replace(path)


if __name__ == "__main__":
    make_archive(Path(sys.argv[1]))
    sys.stdout.write(f"{sys.argv[1]}: {Path(sys.argv[1]).stat().st_size >> 20} MB\n")
