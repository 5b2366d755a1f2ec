"""`everview hub` as a process, for tests: started, awaited, asked over HTTP, and ended."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
from tests.certificates import write_certificates

from everview.server.tokens import hash_of

ROOT = Path(__file__).parent.parent.parent
QUICK = {
    # Few rows: what Java compiles thoroughly, or Spark compiles at all, is not run often enough to pay.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.python.daemon.module": "tests.warm_daemon",
}
PATIENCE = 180
"""Seconds for whatever is awaited; a machine may be busy."""


class Secrets:
    """Certificates and tokens in a folder: who may read and write what, and what each has to show."""

    def __init__(self, folder, **rights):
        write_certificates(folder)
        self.ca = str(folder / "ca.pem")
        self.tokens = {site: f"the-secret-of-{site}" for site in rights}
        self.file = folder / "tokens.toml"
        self.file.write_text(
            "".join(
                f"[[token]]\nsite = '{site}'\nsha256 = '{hash_of(self.tokens[site])}'\n{may}\n"
                for site, may in rights.items()
            )
        )
        self.words = ["--tokens", self.file, "--cert", folder / "cert.pem", "--key", folder / "key.pem"]

    def of(self, site):
        """The environment in which a site has what it needs."""
        return {"EVERVIEW_TOKEN": self.tokens[site], "EVERVIEW_CA": self.ca}


class HubProcess:
    """A hub with a store, over all the processes that it lives through; its address stays the same."""

    def __init__(self, folder, program, *words, port=0, master="local[2]", watched=None):
        self.watched = watched or {}
        self.store, self.program = folder / "hub", folder / "program.sql"
        self.program.write_text(program)
        self.words, self.port, self.master = words, port, master
        self.process, self.address = None, None
        self.log = []

    def start(self):
        words = ["--store", self.store, "--program", self.program, "--master", self.master]
        words += ["--port", self.port, "--log-format", "json", *self.words]
        words += [word for name, value in QUICK.items() for word in ("--conf", f"{name}={value}")]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "everview", "hub", *map(str, words)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # As a service is started: a signal for it is for nobody else.
            start_new_session=True,
        )
        self.reader = threading.Thread(target=self.read, args=(self.process,), daemon=True)
        self.reader.start()
        line = self.process.stdout.readline()
        assert line.startswith("serving "), self.end(signal.SIGKILL) or self.log
        self.address = line.split()[-1]
        self.port = int(self.address.rpartition(":")[2])
        return self

    def read(self, process):
        for line in process.stderr:
            self.log.append(line.rstrip("\n"))

    def events(self, event):
        """What its log has of a kind."""
        found = [json.loads(line) for line in self.log]
        return [one for one in found if one["event"] == event]

    def health(self):
        told = httpx.get(self.address + "/v1/health", timeout=60, **self.watched)
        return told.raise_for_status().json()

    def wait(self, told):
        """Wait until its health is as `told` wants it."""
        until = time.monotonic() + PATIENCE
        while not told(found := self.health()):
            assert time.monotonic() < until, found
            time.sleep(0.05)
        return found

    def refreshed(self):
        """Wait for its first refresh: Spark takes long for that."""
        return self.wait(lambda found: found["refresh"])

    def settled(self):
        """Wait until everything that was pushed is in a refresh."""
        return self.wait(
            lambda found: found["refresh"] and not found["waiting_commits"] and not found["waiting_writes"]
        )

    def resident(self):
        """The greatest number of bytes that it has had in memory, without Java's."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) << 10
        raise AssertionError("no such line")

    def end(self, number=signal.SIGTERM):
        """Send a signal, and return the exit status."""
        status = None
        if self.process.poll() is None:
            if number == signal.SIGKILL:
                os.killpg(self.process.pid, number)
            else:
                self.process.send_signal(number)
        try:
            status = self.process.wait(PATIENCE)
        finally:
            self.reader.join(PATIENCE)
            self.process.stdout.close()
            self.process.stderr.close()
        return status
