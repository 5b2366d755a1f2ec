"""Refusals: what becomes of a request that is not answered."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

__all__ = ["RefusalError"]


class RefusalError(Exception):
    """A request that is not answered."""

    def __init__(self, status: int, code: str, error: str, **headers: str) -> None:
        self.status, self.code, self.error = status, code, error
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        super().__init__(error)

    def response(self) -> Response:
        """As a line of JSON."""
        line = " ".join(self.error.split())
        return JSONResponse({"code": self.code, "error": line}, self.status, self.headers)
