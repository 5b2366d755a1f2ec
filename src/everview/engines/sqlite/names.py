"""The tables of a store that belong to no relation and no view."""

from everview.engines.sqlite.circuits.names import internal

STORE = internal("store")
"""One row: what the store is, and its last commit."""

TAGS = internal("tags")
"""Commit → its random tag, for the commits of which others were told."""

PAGES = internal("pages")
"""Pages of cuts that have not ended yet."""

HOSTS = internal("hosts")
"""The relations and views that the site hosts, none stands for all; of what has partitions the values."""

HUB = internal("hub")
"""Begins the names of what a hub keeps in the store through which it talks with sites (see `hub.gate`)."""

LOG = internal("log")
"""What commits did to the relations and views that somebody consumes in order (see `change_log`)."""

READERS = internal("readers")
"""Who reads these changes, and up to which one it has released."""

FORMAT = 6
"""The number of a store's format; one with another number is refused."""
