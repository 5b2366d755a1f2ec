"""A site that others reach over HTTP. Needs the extra `server`: Starlette and uvicorn."""

from everview.errors import MissingDependencyError

try:
    import starlette as _starlette
    import uvicorn as _uvicorn
except ModuleNotFoundError as error:
    raise MissingDependencyError(f"serving needs {error.name}: pip install 'everview[server]'") from error
else:
    del _starlette, _uvicorn

from everview.server.access import Access, Tokens
from everview.server.app import Limits
from everview.server.listener import Listener
from everview.server.pages import Pages
from everview.server.service import Service, SiteService

__all__ = ["Access", "Limits", "Listener", "Pages", "Service", "SiteService", "Tokens"]
