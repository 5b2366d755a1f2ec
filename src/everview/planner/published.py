"""What the stream of a published view is called: as no relation, and no core of a view, is."""

from __future__ import annotations

_STREAM = "everview_published#"
"""Names that begin with everview_ are reserved."""


def published_stream(view: str) -> str:
    """Return the name of the stream in which a published view travels."""
    return f"{_STREAM}{view}"


def is_published(stream: str) -> bool:
    """Whether a stream is one in which a published view travels."""
    return stream.startswith(_STREAM)


def view_of(stream: str) -> str:
    """Return the relation or view that a stream tells of: of a core, the view that it is a part of."""
    return stream.removeprefix(_STREAM) if is_published(stream) else stream.partition("#")[0]
