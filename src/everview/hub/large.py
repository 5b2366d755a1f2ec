"""A refresh by many rows: one Spark job, whose tasks work on ranges of hashes and send rows to each other."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (as all of Spark's documentation calls it)

from everview.engines.spark.types import spark_schema
from everview.hub.files import Files
from everview.hub.groups import Group
from everview.hub.inbox import Arrival, parquet_files, size_of
from everview.hub.jobs import entitled, job
from everview.hub.memory import Memory
from everview.hub.outcome import Change, Outcome
from everview.hub.plant import RESULTS, TICKET, Plant, Result
from everview.hub.record import Record
from everview.hub.relations import LatticeTable, table_name
from everview.hub.routing import PARCEL_SCHEMA, PARCELS, Parcel, batched
from everview.hub.runs import Part, Run
from everview.hub.sending import sending
from everview.hub.stages import Stages
from everview.hub.stations import running
from everview.hub.tables import Catalog

__all__ = ["TARGET_ROWS", "LargeRefresh"]

TARGET_ROWS = 1_000_000
"""About how many rows a task begins with at most: it holds in memory what becomes of them."""

TARGET_BYTES = 64_000_000
"""About how many bytes of files that is at most, however few rows they are."""

_MOST_TARGETS = 2**15

_CHECKED = {"parquet.page.verify-checksum.enabled": "true"}
"""A damaged page is an error; unasked, Spark takes from it what it can."""


class LargeRefresh:
    """The refresh after a record, by the executors."""

    def __init__(
        self, spark: SparkSession, files: Files, catalog: Catalog, record: Record, tasks: int
    ) -> None:
        self._spark = spark
        self._files = files
        self._catalog = catalog
        self._before = record
        self._tasks = tasks

    def run(self, arrivals: Sequence[Arrival], anew: Sequence[Group] = ()) -> Outcome:
        """Write new runs of every table that changes, and of all tables of what is computed anew."""
        touched = {arrival.relation for arrival in arrivals}
        stages = Stages(self._catalog, touched, anew, first=not self._before.refresh)
        targets = self._targets(arrivals, stages)
        plant = self._plant(stages, targets)
        frame = self._begun(stages, plant)
        for table in self._catalog.relations:
            if table.relation.name in touched:
                mine = [arrival for arrival in arrivals if arrival.relation == table.relation.name]
                sent = self._sent(table, mine, targets)
                frame = sent if frame is None else frame.unionAll(sent)
        if frame is None:
            return Outcome()
        words = self._catalog.words
        for stage in stages:
            met = frame.repartitionById(targets, F.col("target"))
            task = entitled(running(plant, stage), words.of_stage(stage))
            frame = met.mapInArrow(task, PARCELS)
        with job(self._spark.sparkContext, words.of_stages(stages)):
            outcome = _outcome(frame.toArrow())
        outcome.replaced = stages.anew & self._catalog.layouts.keys()
        return outcome

    def _targets(self, arrivals: Sequence[Arrival], stages: Stages) -> int:
        """Into how many ranges the work is divided: as few as memory allows, for each is a task a stage."""
        scanned = [part for name in stages.scanned for part in self._parts(table_name(name))]
        rows = sum(arrival.rows for arrival in arrivals) + sum(part.rows for part in scanned)
        size = sum(size_of(self._files, arrival) for arrival in arrivals)
        size += sum(part.length for part in scanned)
        wanted = max(self._tasks, -(-rows // TARGET_ROWS), -(-size // TARGET_BYTES))
        return min(wanted, _MOST_TARGETS)

    def _plant(self, stages: Stages, targets: int) -> Plant:
        catalog, circuit = self._catalog, self._catalog.circuit
        return Plant(
            files=self._files,
            targets=targets,
            version=self._before.refresh + 1,
            kept=tuple(circuit.kept[name] for name in stages.kept),
            stateless=tuple(stages.stateless),
            views={kept.name: view for view, kept in circuit.views.items()},
            layouts=catalog.layouts,
            hashed={name: catalog.hashed(name) for name in catalog.names},
            parts={name: () if name in stages.anew else self._parts(name) for name in catalog.names},
            anew=stages.anew,
            scanned=stages.scanned,
            replaced={
                kept.name: self._parts(kept.name)
                for kept in circuit.views.values()
                if kept.name in stages.anew
            },
        )

    def _parts(self, table: str) -> tuple[Part, ...]:
        return tuple(part for run in self._before.runs(table) for part in run.parts)

    def _begun(self, stages: Stages, plant: Plant) -> DataFrame | None:
        """What is there before anything has come, sent by the driver."""
        if not stages.first and not stages.scanned:
            return None
        memory = Memory()
        produced: dict[str, pa.Table] = {}
        for operator in stages.first:
            if operator.first is not None:
                memory.run("@first", operator.first)
                produced[operator.name] = memory.table("@first")
        sent = list(plant.emit(memory, produced, {}))
        memory.close()
        if stages.scanned:
            sent += [Parcel(target, TICKET, b"") for target in range(plant.targets)]
        return self._spark.createDataFrame(pa.Table.from_batches(batched(sent), PARCEL_SCHEMA))

    def _sent(self, table: LatticeTable, arrivals: Sequence[Arrival], targets: int) -> DataFrame:
        """What has arrived for a relation, read from its files and sent to where it is stored."""
        fields = table.relation.schema
        parts = []
        for arrival in arrivals:
            paths = [self._files.uri(path) for path in parquet_files(self._files, arrival)]
            read = self._spark.read.schema(spark_schema(fields)).options(**_CHECKED).parquet(*paths)
            mark = F.lit(arrival.mark).cast("bigint").alias(f"c{len(fields)}")
            parts.append(read.select("*", mark))
        united = parts[0]
        for part in parts[1:]:
            united = united.unionAll(part)
        task = sending(table, self._catalog.hashed(table.name), targets)
        return united.mapInArrow(entitled(task, f"reads what has come for {table.relation.name}"), PARCELS)


def _outcome(told: pa.Table) -> Outcome:
    outcome = Outcome(jobs=1)
    parts: dict[str, list[Part]] = {}
    for stream, payload in zip(
        told.column("stream").to_pylist(), told.column("payload").to_pylist(), strict=True
    ):
        if stream == TICKET:
            continue
        if stream != RESULTS:
            raise AssertionError(f"rows of {stream} were sent to nobody")
        result = msgspec.json.decode(payload, type=Result)
        if result.part is not None:
            parts.setdefault(result.name, []).append(result.part)
        if result.change is not None:
            known = outcome.changes.get(result.name, Change(0, 0))
            outcome.changes[result.name] = Change(
                known.appeared + result.change.appeared, known.disappeared + result.change.disappeared
            )
    for name, written in parts.items():
        written.sort(key=lambda part: part.low)
        outcome.written[name] = Run(sum(part.rows for part in written), tuple(written))
    return outcome
