"""The listener: a socket, and uvicorn in a thread of its own that serves a replica on it."""

from __future__ import annotations

import ipaddress
import os
import socket
import ssl
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import uvicorn

from everview.errors import SyncError
from everview.replication.transports.base import Replica
from everview.server.access import Access, Open
from everview.server.app import Limits, application
from everview.server.origins import is_here
from everview.server.pages import Pages
from everview.server.patience import impatient
from everview.server.service import Service

__all__ = ["Listener", "bound"]

GRACE_SECONDS = 5
KEEP_ALIVE_SECONDS = 60


class Listener:
    """Serves a replica until it is stopped; a context manager.

    Without tokens it listens on loopback only: whoever reaches it may do everything. `nice` is by how much
    what else this process does goes first, where threads have priorities: on Linux.
    """

    def __init__(  # noqa: PLR0913 - as many as there is to say
        self,
        replica: Replica,
        access: Access | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        cert: Path | None = None,
        key: Path | None = None,
        limits: Limits | None = None,
        service: Service | None = None,
        nice: int = 0,
        pages: Pages | None = None,
    ) -> None:
        self._nice = nice
        limits = limits or Limits()
        self.is_loopback = _is_loopback(host)
        if access is None and not self.is_loopback:
            raise SyncError(
                f"without tokens only this machine may reach the server, and {host} is reached by others; "
                "listen on 127.0.0.1, or give tokens"
            )
        _check_certificate(cert, key)
        self._app = application(replica, access or Open(), limits, service, pages)
        self._socket = bound(host, port)
        shown = f"[{host}]" if ":" in host else host
        if access is None and not is_here(shown):  # another name of this machine, by which nobody is answered
            number = self._socket.getsockname()[0]
            shown = f"[{number}]" if ":" in number else number
        scheme = "https" if cert else "http"
        self.address = f"{scheme}://{shown}:{self._socket.getsockname()[1]}"
        config = uvicorn.Config(
            self._app,
            http=impatient(limits.header_seconds),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=limits.connections,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
            ssl_certfile=cert,
            ssl_keyfile=key,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="everview-server", daemon=True)
        self._ended = threading.Event()

    def start(self) -> Self:
        """Begin to serve; returns when requests are answered."""
        self._thread.start()
        while not self._server.started:
            if self._ended.wait(0.01):
                raise SyncError(f"the server at {self.address} did not start; its log says why")
        return self

    def stop(self) -> None:
        """Stop serving: those who wait for news are sent home, exchanges under way are finished."""
        heads = getattr(self._app.state, "heads", None)
        if heads is not None:
            with suppress(RuntimeError):  # the loop has ended by itself
                heads.stop()
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join(2 * GRACE_SECONDS)
        self._socket.close()

    def _run(self) -> None:
        if self._nice and sys.platform == "linux":
            # A thread of Linux has a priority of its own, and those that it starts have the same.
            now = os.getpriority(os.PRIO_PROCESS, 0)
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(now + self._nice, 19))
        try:
            self._server.run(sockets=[self._socket])
        except SystemExit:  # what uvicorn does when it cannot start
            pass
        finally:
            self._ended.set()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def bound(host: str, port: int) -> socket.socket:
    """Return a socket on which nobody listens yet, so that the port is known and errors are ours."""
    try:
        family, kind, number, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind, number)
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(address)
            found.listen(128)
        except BaseException:
            found.close()
            raise
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SyncError(
            f"cannot listen on {host}, port {port}: {reason}; --port chooses another, and 0 any that is free"
        ) from None
    return found


def _is_loopback(host: str) -> bool:
    with suppress(OSError):
        found = socket.getaddrinfo(host, None)
        return bool(found) and all(ipaddress.ip_address(entry[4][0]).is_loopback for entry in found)
    return False


def _check_certificate(cert: Path | None, key: Path | None) -> None:
    """Refuse a certificate or key that cannot be used, before anything is bound."""
    if (cert is None) != (key is None):
        raise SyncError("TLS needs both the certificate and its key")
    if cert is None or key is None:
        return
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or error
        raise SyncError(f"cannot use the certificate {cert} with the key {key}: {reason}") from None
