"""A gate and a refresh compared in full: what the hub shows and the gate does not have goes, by Spark."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (as all of Spark's documentation calls it)

from everview.engines.spark.types import column_names, spark_schema, spark_type
from everview.hub.contents import contents
from everview.hub.exporting import FOLDER, Export
from everview.hub.files import Files
from everview.hub.inbox import Arrival, parquet_files, written_parts
from everview.hub.jobs import job
from everview.hub.record import Record
from everview.hub.tables import Catalog
from everview.language.relations import Relation, Semantics

__all__ = ["compared"]


def compared(spark: SparkSession, files: Files, catalog: Catalog, record: Record, export: Export) -> Export:
    """An export of all that the gate has, and with it what the hub shows and the gate does not have."""
    more = []
    for place, relation in enumerate(catalog.program.relations.values()):
        told = [arrival for arrival in export.arrivals if arrival.relation == relation.name]
        shown = _named(relation, contents(spark, files, catalog, record, relation.name))
        folder = f"{FOLDER}/compared-{place}"
        gone = shown.distinct()
        for arrival in told:
            if arrival.present:
                paths = [files.uri(path) for path in parquet_files(files, arrival)]
                rows = spark.read.schema(spark_schema(relation.schema)).parquet(*paths)
                gone = gone.exceptAll(_named(relation, rows).distinct())
        whole = [
            F.col(name) if name in gone.columns else _nothing(relation, name) for name in _columns(relation)
        ]
        with job(spark.sparkContext, f"compares {relation.name} with the gate"):
            gone.select(*whole).write.parquet(files.uri(folder))
            count = spark.read.schema(spark_schema(relation.schema)).parquet(files.uri(folder)).count()
        if count:
            clears = relation.semantics is Semantics.BAG
            parts = written_parts(files, folder)
            more.append(Arrival(export.numbered - 1, relation.name, False, count, folder, clears, parts))
    return replace(export, arrivals=(*export.arrivals, *more))


def _columns(relation: Relation) -> list[str]:
    return column_names(len(relation.schema))


def _named(relation: Relation, rows: DataFrame) -> DataFrame:
    """What tells rows apart: all columns, or the key."""
    names = _columns(relation)
    keyed = relation.semantics is Semantics.KEYED
    return rows.select(*[names[place] for place in relation.key_positions] if keyed else names)


def _nothing(relation: Relation, name: str) -> Column:
    kind = spark_type(relation.schema[int(name[1:])].type)
    return F.lit(None).cast(kind).alias(name)
