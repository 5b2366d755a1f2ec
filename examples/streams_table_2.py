"""Streams' Table 2, on the terminal and on Spark: `python examples/streams_table_2.py`.

A relation of three tuples, two projections, their join, and what happens to the result
when tuples are deleted and inserted again. Nothing is staged: the algebra computes the annotations, and
Spark recomputes the view from the tuples that are left.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from everview.algebra.causal_length import CausalLengths
from everview.algebra.ids import show_id
from everview.algebra.provenance import Provenance
from everview.engines.spark.session import start_session

Row = tuple[str, ...]
Augmented = dict[Row, Provenance]

BASE: dict[Row, str] = {("a1", "b", "c1"): "t1", ("a1", "b", "c2"): "t2", ("a2", "b", "c2"): "t3"}

VIEW = """
    SELECT DISTINCT r1.a, r2.c
    FROM (SELECT DISTINCT a, b FROM r) AS r1 JOIN (SELECT DISTINCT b, c FROM r) AS r2 ON r1.b = r2.b
"""


def main() -> int:
    """Show the example; return 0 if the algebra and Spark agree at every step."""
    console = Console()
    console.print("Starting Spark …")
    spark = start_session(app_name="everview example")
    agreed = show(spark, console)
    spark.stop()
    return 0 if agreed else 1


def show(spark: SparkSession, console: Console) -> bool:
    """Show the relation and its views, then what becomes of them; return whether Spark always agrees."""
    relation = {row: Provenance.of(id_) for row, id_ in BASE.items()}
    left, right = project(relation, 0, 1), project(relation, 1, 2)
    view = project(natural_join(left, right), 0, 2)
    for title, augmented in (
        ("R(A, B, C)", relation),
        ("R1 = π AB (R)", left),
        ("R2 = π BC (R)", right),
        ("R3 = π AC (R1 ⋈ R2)", view),
    ):
        console.print(_provenance_table(title, augmented))
    console.print("R3's [bold]⟨a1, c2⟩[/] is there while t2 is, or while t1 and t3 both are.\n")
    agreed = True
    for story, lengths in history():
        present = [row for row, id_ in BASE.items() if lengths.is_present(id_)]
        spark.createDataFrame(present, "a string, b string, c string").createOrReplaceTempView("r")
        recomputed = {tuple(row) for row in spark.sql(VIEW).collect()}
        valued = {row for row, p in view.items() if p.present(lengths)}
        agreed = agreed and valued == recomputed
        shown = ", ".join(f"{show_id(id_)} → {length}" for id_, length in sorted(lengths.items(), key=str))
        console.print(f"[bold]{story}[/]   {shown}", soft_wrap=True)
        console.print(_valuation_table(view, valued, recomputed))
    verdict = "[green]The valuation and Spark's recomputation agree at every step.[/]"
    console.print(verdict if agreed else "[red]The valuation and Spark's recomputation differ.[/]")
    return agreed


def history() -> Iterable[tuple[str, CausalLengths]]:
    """Yield the causal lengths after each step; a length counts insertions and deletions in turn."""
    lengths = CausalLengths().insert("t1").insert("t2").insert("t3")
    yield "all three inserted", lengths
    lengths = lengths.delete("t2").delete("t3")
    yield "t2 and t3 deleted", lengths
    lengths = lengths.insert("t3")
    yield "t3 inserted again: the paper's Section 7", lengths
    elsewhere = lengths.delete("t1")
    lengths = lengths.insert("t2") | elsewhere
    yield "t2 inserted here, t1 deleted at another site, merged", lengths


def project(relation: Augmented, *columns: int) -> Augmented:
    """Keep some columns; tuples that become equal add their provenance."""
    projected: Augmented = {}
    for row, provenance in relation.items():
        short = tuple(row[column] for column in columns)
        projected[short] = projected.get(short, Provenance.ZERO) + provenance
    return projected


def natural_join(left: Augmented, right: Augmented) -> Augmented:
    """Join R1(A, B) with R2(B, C); provenances multiply."""
    return {
        (*row, other[1]): p * q for row, p in left.items() for other, q in right.items() if row[1] == other[0]
    }


def _provenance_table(title: str, augmented: Augmented) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("tuple")
    table.add_column("provenance", style="cyan")
    for row, provenance in augmented.items():
        table.add_row(_shown(row), str(provenance))
    return table


def _valuation_table(view: Augmented, valued: set[Row], recomputed: set[Row]) -> Table:
    table = Table()
    for name in ("tuple of R3", "provenance", "valued", "on Spark"):
        table.add_column(name)
    for row, provenance in view.items():
        table.add_row(_shown(row), str(provenance), _mark(row in valued), _mark(row in recomputed))
    return table


def _shown(row: Row) -> str:
    return f"⟨{', '.join(row)}⟩"


def _mark(there: bool) -> str:  # noqa: FBT001 - one flag, one sign
    return "[green]present[/]" if there else "[dim]absent[/]"


if __name__ == "__main__":
    sys.exit(main())
