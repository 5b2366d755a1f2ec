"""What a page shows, read all at one time: rows, and what would come and go."""

from __future__ import annotations

from collections.abc import Iterable

from playwright.sync_api import Page

from everview.console.cells import cells_of

Cells = tuple[str, ...]


def cells(page: Page) -> list[Cells]:
    """The rows of the table that is shown."""
    told = "rows => rows.map(row => [...row.cells].map(cell => cell.innerText))"
    return [tuple(row) for row in page.locator("#main tr[data-row]").evaluate_all(told)]


def turned(page: Page) -> dict[str, list[Cells]]:
    """What would come and go without a base row, by relation and view."""
    told = """turns => turns.map(turn => [
        turn.querySelector("h4").innerText.split(" ")[0],
        [...turn.querySelectorAll("tbody tr")].map(row => [...row.cells].map(cell => cell.innerText)),
    ])"""
    return {name: sorted(map(tuple, rows)) for name, rows in page.locator(".turn").evaluate_all(told)}


def as_shown(rows: Iterable[Iterable[object]]) -> list[Cells]:
    """Rows of a store as the page shows them."""
    return [tuple("NULL" if cell is None else cell for cell in cells_of(row)) for row in rows]


def difference(before: Iterable[Cells], after: Iterable[Cells]) -> list[Cells]:
    """How rows come and go between two states in which each occurs once."""
    one, other = set(before), set(after)
    return sorted([*(("−1", *row) for row in one - other), *(("+1", *row) for row in other - one)])
