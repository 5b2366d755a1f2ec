"""A bucket on loopback that speaks S3's protocol, and fails when it is told to.

Its objects are plain files in a folder, so that Spark's JVM, which has no S3 here, can be sent to the same
objects by `file:`. There is no rename. A listing is complete, but comes in small pages and in no order, unless
it is of a Delta log: S3 lists by name, and `deltalake` takes a later commit before an earlier one for a gap.
Signatures are not looked at. It runs in a process of its own, for `deltalake` lets no other thread of Python
run while it waits for an answer.
"""

import hashlib
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

BUCKET = "bucket"
CONTROL = "/!control"
ROOT = Path(__file__).parent.parent.parent


@dataclass
class Fault:
    """What happens to so many of the requests of a kind.

    `slow down` answers that they are too many, `refuse` that they may not be made, `cut` ends the connection
    half-way, when nothing has been done, or half of the answer was sent; `lose` does what is asked for and
    ends the connection, `unsure` does it and answers that something went wrong, `wait` lets it take longer.
    """

    kind: str
    times: int = 1
    method: str = ".*"
    key: str = ".*"
    seconds: float = 0.05
    chance: float = 1.0

    def meets(self, method, key):
        return (
            self.times > 0
            and re.fullmatch(self.method, method)
            and re.search(self.key, key)
            and random.random() < self.chance
        )


class Bucket:
    """A bucket whose server is another process."""

    def __init__(self, folder, page=1000):
        self.folder = Path(folder).absolute()
        command = [sys.executable, "-m", "tests.hub.s3", str(self.folder), str(page)]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.endpoint = self._process.stdout.readline().strip()

    def close(self):
        self._process.stdin.close()  # the server ends with it, also when this process is killed
        self._process.wait()
        self._process.stdout.close()

    def path(self, key):
        return self.folder / BUCKET / key

    def uri(self, prefix="hub"):
        return f"s3://{BUCKET}/{prefix}"

    def options(self, prefix="hub", **more):
        """What a hub needs to know to find it; its JVM goes by the folder."""
        return {
            "aws_endpoint": self.endpoint,
            "aws_allow_http": "true",
            "aws_region": "us-east-1",
            "aws_access_key_id": "the-access-key",
            "aws_secret_access_key": "the-secret-key",
            "spark_uri": self.path(prefix).as_uri(),
            "cache_folder": str(self.folder / "cache"),
            **more,
        }

    def _control(self, **asked):
        body = json.dumps(asked).encode()
        request = urllib.request.Request(self.endpoint + CONTROL, data=body, method="POST")
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read())

    def fail(self, kind, **more):
        """Have some of the next requests fail."""
        self._control(fail={"kind": kind, **more})

    def heal(self):
        """Have no more requests fail; what was asked for and met since the last time."""
        return self._control(heal=True)

    def left(self):
        """How many requests are still to fail."""
        return self._control()["left"]


class Server:
    """The server, and the folder of its objects."""

    def __init__(self, folder, page):
        self.folder = Path(folder)
        self.page = page
        self.metadata = {}
        self.faults = []
        self.requests = Counter()
        self.met = Counter()
        self._lock = threading.Lock()
        (self.folder / BUCKET).mkdir(parents=True, exist_ok=True)
        (self.folder / "drafts").mkdir(exist_ok=True)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._server.handle_error = lambda request, address: None  # a client that was killed
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"

    def path(self, key):
        return self.folder / BUCKET / key

    def control(self, asked):
        with self._lock:
            told = {"requests": self.requests, "met": self.met}
            told["left"] = sum(fault.times for fault in self.faults)
            if "fail" in asked:
                self.faults.append(Fault(**asked["fail"]))
            if "heal" in asked:
                self.faults, self.requests, self.met = [], Counter(), Counter()
            return told

    def fault(self, method, key):
        with self._lock:
            self.requests[method] += 1
            for fault in self.faults:
                if fault.meets(method, key):
                    fault.times -= 1
                    self.met[fault.kind] += 1
                    return fault
        return None

    def keys(self, prefix):
        root = self.folder / BUCKET
        found = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
        return sorted(key for key in found if key.startswith(prefix))

    def delete(self, key):
        path = self.path(key)
        with self._lock:
            if path.is_file():
                path.unlink()
                while path.parent.name != BUCKET and not any(path.parent.iterdir()):
                    path = path.parent
                    path.rmdir()

    def put(self, key, content, metadata, *, if_absent):
        """Whether it was put; it is there whole or not at all."""
        draft = self.folder / "drafts" / uuid.uuid4().hex
        draft.write_bytes(content)
        target = self.path(key)
        try:
            with self._lock:
                target.parent.mkdir(parents=True, exist_ok=True)
                if if_absent:
                    os.link(draft, target)
                else:
                    draft.replace(target)
                self.metadata[key] = metadata
        except FileExistsError:
            return False
        finally:
            draft.unlink(missing_ok=True)
        return True


@contextmanager
def bucket(folder, **more):
    served = Bucket(folder, **more)
    try:
        yield served
    finally:
        served.close()


def _handler(server):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *arguments):
            pass

        def handle_one_request(self):
            self.cut_at = None
            super().handle_one_request()

        def do_POST(self):
            if self.path == CONTROL:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self._answer(200, json.dumps(server.control(asked)).encode())
            else:
                self._served()

        def _parsed(self):
            parts = urlsplit(self.path)
            name, _, key = unquote(parts.path).lstrip("/").partition("/")
            assert name == BUCKET
            return key, parse_qs(parts.query, keep_blank_values=True)

        def _served(self):
            key, query = self._parsed()
            length = int(self.headers.get("Content-Length") or 0)
            about = key or query.get("prefix", [""])[0]
            fault = server.fault(self.command, about)
            kind = fault.kind if fault else ""
            if kind == "cut" and length:
                self.rfile.read(length // 2)
                self._hang_up()
                return
            body = self.rfile.read(length)
            if kind == "wait":
                time.sleep(fault.seconds)
            if kind == "slow down":
                self._error(503, "SlowDown", "Please reduce your request rate.")
                return
            if kind == "refuse":
                self._error(403, "AccessDenied", "Access Denied")
                return
            if kind == "cut":
                self.cut_at = 0.5
            if kind in ("lose", "unsure"):
                self._quiet = True
                self._do(key, query, body)
                self._quiet = False
                if kind == "lose":
                    self._hang_up()
                else:
                    self._error(500, "InternalError", "We encountered an internal error.")
                return
            self._do(key, query, body)

        do_GET = do_PUT = do_DELETE = do_HEAD = _served  # noqa: N815
        _quiet = False

        def _hang_up(self):
            self.close_connection = True
            self.connection.close()

        def _do(self, key, query, body):
            match self.command:
                case "PUT" if "x-amz-copy-source" in self.headers:
                    source = unquote(self.headers["x-amz-copy-source"]).lstrip("/").partition("/")[2]
                    if not server.path(source).is_file():
                        self._error(404, "NoSuchKey", "The specified key does not exist.")
                        return
                    server.put(key, server.path(source).read_bytes(), {}, if_absent=False)
                    self._answer(200, b"<CopyObjectResult><ETag>e</ETag></CopyObjectResult>")
                case "PUT":
                    metadata = {
                        name.lower(): value
                        for name, value in self.headers.items()
                        if name.lower().startswith("x-amz-meta-")
                    }
                    if_absent = self.headers.get("If-None-Match") == "*"
                    if server.put(key, body, metadata, if_absent=if_absent):
                        self._answer(200, b"", {"ETag": _etag(body)})
                    else:
                        self._error(412, "PreconditionFailed", "At least one precondition did not hold.")
                case "POST" if "delete" in query:
                    self._delete(body)
                case "DELETE":
                    server.delete(key)
                    self._answer(204)
                case "GET" if not key:
                    self._list(query)
                case "GET" | "HEAD":
                    self._get(key)
                case _:
                    self._error(501, "NotImplemented", self.command)

        def _delete(self, body):
            tree = ET.fromstring(body)
            keys = [found.text for found in tree.iter() if found.tag.endswith("Key")]
            for key in keys:
                server.delete(key)
            told = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
            self._answer(200, f"<DeleteResult>{told}</DeleteResult>".encode())

        def _get(self, key):
            path = server.path(key)
            try:
                content, status = path.read_bytes(), path.stat()
            except OSError:
                self._error(404, "NoSuchKey", "The specified key does not exist.")
                return
            code, headers = (
                200,
                {
                    "ETag": _etag(content),
                    "Last-Modified": self.date_time_string(status.st_mtime),
                    **server.metadata.get(key, {}),
                },
            )
            wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range") or "")
            if wanted:
                whole = len(content)
                if wanted[1]:
                    start, end = int(wanted[1]), min(int(wanted[2] or whole - 1), whole - 1)
                else:
                    start, end = max(whole - int(wanted[2]), 0), whole - 1
                content = content[start : end + 1]
                code, headers["Content-Range"] = 206, f"bytes {start}-{end}/{whole}"
            self._answer(code, content, headers)

        def _list(self, query):
            prefix, delimiter = query.get("prefix", [""])[0], query.get("delimiter", [""])[0]
            items = {}
            for key in server.keys(prefix):
                head, found, _ = key.removeprefix(prefix).partition(delimiter) if delimiter else ("", "", "")
                if found:
                    items[prefix + head + delimiter] = None
                else:
                    items[key] = server.path(key)
            after = query.get("continuation-token", query.get("start-after", [""]))[0]
            left = sorted(name for name in items if name > after)
            page, more = left[: server.page], left[server.page :]
            token = page[-1] if more else ""
            if "_delta_log" not in prefix:
                random.shuffle(page)
            told = [
                f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>",
                f"<NextContinuationToken>{escape(token)}</NextContinuationToken>" if more else "",
            ]
            for name in page:
                path = items[name]
                if path is None:
                    told.append(f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>")
                    continue
                try:
                    status = path.stat()
                except OSError:
                    continue
                at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(status.st_mtime))
                told.append(
                    f"<Contents><Key>{escape(name)}</Key><LastModified>{at}</LastModified>"
                    f"<ETag>e</ETag><Size>{status.st_size}</Size></Contents>"
                )
            text = f"<ListBucketResult><Name>{BUCKET}</Name>{''.join(told)}</ListBucketResult>"
            self._answer(200, text.encode())

        def _error(self, code, name, message):
            text = f"<Error><Code>{name}</Code><Message>{message}</Message><Resource>{quote(self.path)}"
            self._answer(code, f"{text}</Resource></Error>".encode())

        def _answer(self, code, content=b"", headers=()):
            if self._quiet:
                return
            self.send_response(code)
            for name, value in dict(headers).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command == "HEAD":
                return
            if self.cut_at is not None:
                self.wfile.write(content[: int(len(content) * self.cut_at)])
                self._hang_up()
                return
            self.wfile.write(content)

    return Handler


def _etag(content):
    return f'"{hashlib.md5(content).hexdigest()}"'


if __name__ == "__main__":
    served = Server(sys.argv[1], int(sys.argv[2]))
    sys.stdout.write(served.endpoint + "\n")
    sys.stdout.flush()
    sys.stdin.read()
