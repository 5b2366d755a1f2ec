import pytest

import everview as ev


@pytest.fixture
def open_site():
    """Opens sites on program texts, in memory unless a path is given; closes them after the test."""
    opened = []

    def open_(text=None, path=":memory:", **options):
        program = ev.Program.parse(text) if text is not None else None
        opened.append(ev.Site.open(path, program, **options))
        return opened[-1]

    yield open_
    for site in opened:
        site.close()
