"""The console: one page that shows a site or a hub to people, served beside what devices use.

::

    subject       what is looked at, whichever it is        ← sites, hubs
    pictures      the operators of a view, as nodes
    provenance    why a row is there, as far as a token may know
    timelines     a simulator's run
    api           the addresses that the page asks          ← all of these
    assets        the page itself: plain files, no build step, nothing from elsewhere
    pages         both, for a server

Whatever is told is told to a token: it sees the relations and views that it may read, and nothing of others.
Needs the extra `server`.
"""

from everview.console.pages import Console
from everview.console.sites import SiteSubject
from everview.console.subject import Subject

__all__ = ["Console", "SiteSubject", "Subject"]
