"""What must hold of a site at any time: every view is what its definition says."""

from everview.engines.reference import evaluate_views
from everview.language.order import sorted_rows


def typed(rows):
    """Rows with the types of their cells: 1, 1.0 and True are three values."""
    return [tuple((type(cell), repr(cell)) for cell in row) for row in rows]


def assert_fresh(site):
    """Every view equals its defining query: by the naive reference, and by SQLite from scratch."""
    program = site.program
    expected = evaluate_views(program, {name: site.rows(name) for name in program.relations})
    for name, view in program.views.items():
        kept = site.rows(name)
        assert typed(kept) == typed(sorted_rows(expected[name].rows)), name
        again = site._reading.rows_of(view.plan, inside=False, strict=False)
        assert typed(kept) == typed(sorted_rows(again)), name
