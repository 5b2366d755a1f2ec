"""A site behind HTTP. Everything is one POST after the other, so a device behind NAT only dials out.

A message may be sent twice without harm, so whatever fails on the way is simply tried again: connections
that break, answers that do not come in time, servers that are restarting or busy.
"""

from __future__ import annotations

import json
import random
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import httpx

from everview.errors import SyncError
from everview.replication.transports.base import TRY_LATER, Replica, converse
from everview.replication.transports.denials import of_header
from everview.replication.transports.report import OnProgress, SyncReport
from everview.replication.wire.codec import LARGEST_MESSAGE

__all__ = ["DENIED_HEADER", "MESSAGE_TYPE", "HttpTransport"]

MESSAGE_TYPE = "application/vnd.everview"
DENIED_HEADER = "Everview-Denied"
"""Of a request: tell what the token does not allow of what the message asks for. Of its answer: that."""

TIMEOUT = httpx.Timeout(60.0, connect=10.0)
"""Seconds without a byte after which a request is given up; the connection itself has to come sooner."""

ATTEMPTS = 5
FIRST_DELAY = 0.2
LONGEST_DELAY = 10.0
PATIENCE = 60.0
"""For so many seconds in all a request waits for a server that says when to come again; these do not count as
attempts. Then the sync fails, and may be tried again."""
LARGEST_ANSWER = LARGEST_MESSAGE
"""No message is larger; a server that sends more is not one of ours."""

BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Answers after which the same request may well succeed."""


class HttpTransport:
    """A way to a site that is served at a URL."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        ca: str | Path | None = None,
        attempts: int = ATTEMPTS,
        timeout: httpx.Timeout = TIMEOUT,
    ) -> None:
        self._url = _checked(url)
        self.peer = f"{self._url.scheme}://{self._url.netloc.decode()}"
        self._attempts = attempts
        self._head = -1
        headers = {"Content-Type": MESSAGE_TYPE, "Accept": MESSAGE_TYPE, "User-Agent": "everview"}
        self._has_token = bool(token)
        if token:
            if not token.isascii() or not token.isprintable():
                raise SyncError("a token has only printable ASCII characters", peer=self.peer)
            headers["Authorization"] = f"Bearer {token}"
        self._client = httpx.Client(
            headers=headers,
            timeout=timeout,
            # To read everybody whom the system trusts takes a while; without TLS nobody is asked.
            verify=_trust(ca, self.peer)
            if self._url.scheme == "https"
            else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            # A redirect would carry the token and the rows to whoever it names.
            follow_redirects=False,
            # Nobody reaches this machine's own loopback through a proxy.
            trust_env=not _is_loopback(self._url.host),
        )

    def sync(self, replica: Replica, *, on_progress: OnProgress | None = None) -> SyncReport:
        """Exchange messages until both sides are done."""
        talk = replica.exchange(self.peer, on_progress=on_progress)
        asks = {DENIED_HEADER: "tell"}  # with the first message, which says all that is wanted
        told = ""

        def call(data: bytes) -> bytes:
            nonlocal asks, told
            headers, body = self._send("POST", "/v1/exchange", content=data, headers=asks)
            told, asks = told or headers.get(DENIED_HEADER, ""), {}
            return body

        report = converse(talk, call, self.peer)
        if told:
            report.denied = replica.denied(of_header(told))
        return report

    def wait(self, timeout: float) -> bool:
        """Ask the server to answer when there is a commit after the last that was heard of."""
        _, answer = self._send(
            "GET",
            "/v1/changes",
            params={"after": self._head, "timeout": f"{timeout:g}"},
            timeout=httpx.Timeout(timeout + 15, connect=10.0),
        )
        try:
            head = int(json.loads(answer)["head"])
        except (ValueError, KeyError, TypeError):
            self._fail("its answer about changes cannot be read; is it an Everview server?", retry=False)
        news, self._head = head != self._head, head
        return news

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _send(self, method: str, path: str, **more: Any) -> tuple[Mapping[str, str], bytes]:
        """Send a request until it is answered; SyncError when it never is, or when trying again is no use."""
        url = self._url.copy_with(raw_path=(self._url.path.rstrip("/") + path).encode())
        delay, waited, attempt = FIRST_DELAY, 0.0, 0
        while True:
            attempt += 1
            last = attempt >= self._attempts
            try:
                status, headers, body = self._once(method, url, more)
            except httpx.TransportError as error:
                if last or not _passes(error):
                    self._fail(_said(error, self._url.scheme), retry=_passes(error), cause=error)
            else:
                if status == httpx.codes.OK:
                    return headers, body
                asked = _retry_after(headers)
                if asked and status in BUSY and waited + asked <= PATIENCE:
                    # Not all who were told the same are to come back at once.
                    pause = asked * random.uniform(1.0, 1.5)
                    waited += pause
                    attempt -= 1
                    time.sleep(pause)
                    continue
                if last or status not in BUSY:
                    said = self._about_token() if status == httpx.codes.UNAUTHORIZED else ""
                    if status == httpx.codes.NOT_FOUND and self._url.path.strip("/"):
                        said = f"there is nothing at {self._url.path}; say {self.peer}, as it printed"
                    self._fail(said or _refusal(status, body), retry=status in BUSY)
            time.sleep(delay * random.uniform(0.5, 1.0))
            delay = min(delay * 2, LONGEST_DELAY)

    def _once(
        self, method: str, url: httpx.URL, more: dict[str, Any]
    ) -> tuple[int, Mapping[str, str], bytes]:
        with self._client.stream(method, url, **more) as answer:
            body = bytearray()
            for block in answer.iter_bytes():
                body += block
                if len(body) > LARGEST_ANSWER:
                    self._fail(f"it answers more than {LARGEST_ANSWER >> 20} MB at once", retry=False)
            return answer.status_code, answer.headers, bytes(body)

    def _about_token(self) -> str:
        if self._has_token:
            return (
                "it does not know this token; `everview token --site NAME` makes one, "
                "whose entry belongs into the file that the server reads"
            )
        return "it needs a token; put the one that `everview token` printed for this site into EVERVIEW_TOKEN"

    def _fail(self, what: str, *, retry: bool, cause: Exception | None = None) -> NoReturn:
        advice = TRY_LATER if retry else ""
        message = f"cannot sync with {self.peer}: {what}{advice}"
        raise SyncError(message, peer=self.peer, retry=retry) from cause


def _checked(url: str) -> httpx.URL:
    try:
        found = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise SyncError(f"{url} is no address: {error}", peer=url) from None
    if found.scheme not in ("http", "https") or not found.host:
        raise SyncError(f"{url} is no address; it looks like https://host:port", peer=url)
    if found.userinfo or found.query or found.fragment:
        raise SyncError("an address has neither password nor query; give the token apart", peer=found.host)
    return found


def _trust(ca: str | Path | None, peer: str) -> ssl.SSLContext:
    """Return whom to trust: the given authority alone, or those that the system or certifi name."""
    if ca is None:
        return httpx.create_ssl_context()
    try:
        return ssl.create_default_context(cafile=str(ca))
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or error
        raise SyncError(f"cannot read the authority's certificate {ca}: {reason}", peer=peer) from None


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")


def _passes(error: httpx.TransportError) -> bool:
    """Whether it may pass: a certificate that is not trusted today is not trusted in a second either."""
    text = str(error)
    lasting = ("CERTIFICATE_VERIFY", *_NO_TLS)
    return not isinstance(error, httpx.UnsupportedProtocol) and not any(one in text for one in lasting)


def _said(error: httpx.TransportError, scheme: str) -> str:
    text = str(error)
    if scheme == "https" and any(one in text for one in _NO_TLS):
        return "it does not speak TLS; say http:// if it was started without --cert"
    if "CERTIFICATE_VERIFY" in text:
        advice = "name the authority that signed it, by --ca or EVERVIEW_CA"
        return f"its certificate is not trusted ({text}); {advice}"
    if isinstance(error, httpx.TimeoutException):
        return "it does not answer in time"
    if isinstance(error, httpx.ConnectError):
        return f"no connection ({text}); see that it runs, at the address and port that it printed"
    broke = f"the connection broke ({text or type(error).__name__})"
    if scheme == "http" and isinstance(error, httpx.RemoteProtocolError):
        return f"{broke}; if it was started with --cert, say https://"
    return broke


def _refusal(status: int, body: bytes) -> str:
    """Return what a server says, in one line and within reason."""
    try:
        said = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        said = None
    if isinstance(said, str) and said:
        return " ".join(said.split())[:500]
    if status == httpx.codes.NOT_FOUND:
        return "there is no Everview server at this address"
    if 300 <= status < 400:
        return "it redirects elsewhere; use that address"
    return f"it answers with status {status}, as no Everview server does; see that the port is right"


def _retry_after(headers: Mapping[str, str]) -> float:
    try:
        return min(float(headers.get("Retry-After", "0")), LONGEST_DELAY)
    except ValueError:
        return 0.0
