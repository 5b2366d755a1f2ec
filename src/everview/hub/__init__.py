"""The hub: the data pipeline on Spark."""

from everview.hub.hub import Hub
from everview.hub.publish import PublishReport
from everview.hub.refresh import Change, RefreshReport
from everview.hub.screening import Rejected
from everview.hub.vacuum import VacuumReport

__all__ = ["Change", "Hub", "PublishReport", "RefreshReport", "Rejected", "VacuumReport"]
