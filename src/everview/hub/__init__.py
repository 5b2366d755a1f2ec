"""The hub: the data pipeline on Spark."""

from everview.hub.hub import Hub
from everview.hub.refresh import Change, RefreshReport
from everview.hub.screening import Rejected

__all__ = ["Change", "Hub", "RefreshReport", "Rejected"]
