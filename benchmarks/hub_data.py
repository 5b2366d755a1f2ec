"""Orders and customers by number: the same rows for a hub and for plain Spark, made by Spark itself.

An order's columns are functions of its number, so a delta knows the rows that it deletes. Deleted orders are
scattered over the base and never the same twice; inserted ones have numbers that were never used.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import everview as ev
from everview.engines.spark.session import start_session

PROGRAM = ev.Program.parse(
    """
CREATE TABLE orders (id BIGINT NOT NULL, customer BIGINT NOT NULL, shop BIGINT NOT NULL,
                     amount BIGINT NOT NULL);
CREATE TABLE customers (customer BIGINT NOT NULL, city TEXT NOT NULL);
CREATE MATERIALIZED VIEW buyers AS SELECT customer FROM orders;
CREATE MATERIALIZED VIEW bought AS
  SELECT id, amount, city FROM orders JOIN customers ON orders.customer = customers.customer;
CREATE MATERIALIZED VIEW turnover AS
  SELECT shop, sum(amount) AS total, max(amount) AS most FROM orders GROUP BY shop;
"""
)
VIEWS = ("buyers", "bought", "turnover")
QUICKLY = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Nothing is run so often that it would pay to compile it, by Spark or thoroughly by Java."""
_SCATTER = 6_700_417
"""A prime: its multiples visit all numbers below a base that it does not divide."""


def session(*, quick: bool, cores: int | None = None, memory: str = "8g") -> SparkSession:
    """Spark in this process; `quick` when there are so few rows that compiling a query takes longest."""
    settings = {"spark.driver.memory": memory, "spark.sql.shuffle.partitions": str(cores or 2)}
    if quick:
        settings |= QUICKLY
    return start_session(master=f"local[{cores or '*'}]", settings=settings)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many rows there are of each kind."""

    orders: int
    customers: int
    shops: int


def orders(numbers: DataFrame, sizes: Sizes) -> DataFrame:
    """The orders with these numbers (column `id`)."""
    return numbers.selectExpr(
        "id",
        f"pmod(xxhash64(id), {sizes.customers}L) AS customer",
        f"pmod(xxhash64(id, 1), {sizes.shops}L) AS shop",
        "pmod(xxhash64(id, 2), 1000000L) AS amount",
    )


def base(spark: SparkSession, sizes: Sizes) -> DataFrame:
    """The orders at the beginning."""
    return orders(spark.range(sizes.orders), sizes)


def customers(spark: SparkSession, sizes: Sizes) -> DataFrame:
    """All customers."""
    return spark.range(sizes.customers).selectExpr("id AS customer", "concat('city ', id % 5000) AS city")


@dataclass(frozen=True, slots=True)
class Delta:
    """Files of rows that come and of rows that go."""

    inserted: str
    deleted: str
    rows: int


class Deltas:
    """Deltas one after the other, each of half inserts and half deletes."""

    def __init__(self, spark: SparkSession, folder: Path, sizes: Sizes) -> None:
        self._spark = spark
        self._folder = folder
        self._sizes = sizes
        self._inserted = 0
        self._number = 0

    def next(self, rows: int) -> Delta:
        """The next delta of so many rows, as files."""
        half, start = rows // 2, self._inserted
        self._inserted += half
        self._number += 1
        files = max(1, half // 250_000)
        fresh = self._spark.range(self._sizes.orders + start, self._sizes.orders + start + half, 1, files)
        gone = self._spark.range(start, start + half, 1, files).selectExpr(f"{self._scattered()} AS id")
        delta = Delta(
            str(self._folder / f"inserted-{self._number}"),
            str(self._folder / f"deleted-{self._number}"),
            rows,
        )
        orders(fresh, self._sizes).write.parquet(delta.inserted)
        orders(gone, self._sizes).write.parquet(delta.deleted)
        return delta

    def _scattered(self) -> str:
        """The number of the order that the id-th deletion takes: all of the base, then blocks of later ones.

        A block is half as large as the base, so that it has been inserted long before it is deleted.
        """
        base, block = self._sizes.orders, self._sizes.orders // 2
        later = f"id - {base}L"
        of_block = f"({later}) DIV {block}L * {block}L + pmod(({later}) * {_SCATTER}L, {block}L)"
        return f"CASE WHEN id < {base}L THEN pmod(id * {_SCATTER}L, {base}L) ELSE {base}L + {of_block} END"


class PlainSpark:
    """The same merge and the same three views, written out by Spark as anybody would write it."""

    def __init__(self, spark: SparkSession, folder: Path, sizes: Sizes) -> None:
        self._spark = spark
        self._folder = folder
        self._version = 0
        base(spark, sizes).write.parquet(self._path("orders"))
        customers(spark, sizes).write.parquet(str(folder / "customers"))

    def _path(self, table: str) -> str:
        return str(self._folder / f"{table}-{self._version}")

    def _read(self, path: str) -> DataFrame:
        schema = "id BIGINT, customer BIGINT, shop BIGINT, amount BIGINT"
        return self._spark.read.schema(schema).parquet(path)

    def refresh(self, delta: Delta) -> None:
        """Merge the delta into the base; write it and the views."""
        old = self._read(self._path("orders"))
        merged = old.join(self._read(delta.deleted), ["id", "customer", "shop", "amount"], "left_anti")
        merged = merged.unionAll(self._read(delta.inserted))
        self._version += 1
        merged.write.parquet(self._path("orders"))
        new = self._read(self._path("orders"))
        people = self._spark.read.schema("customer BIGINT, city STRING").parquet(
            str(self._folder / "customers")
        )
        new.groupBy("customer").count().write.parquet(self._path("buyers"))
        new.join(people, "customer").select("id", "amount", "city").write.parquet(self._path("bought"))
        new.createOrReplaceTempView("plain_orders")
        self._spark.sql(
            "SELECT shop, sum(amount) AS total, max(amount) AS most FROM plain_orders GROUP BY shop"
        ).write.parquet(self._path("turnover"))
