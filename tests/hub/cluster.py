"""A standalone cluster on this machine, and a Python for its executors that has no everview."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pyspark

from everview.engines.spark.java import find_java
from everview.hub.jobs import NEEDED

SPARK_HOME = Path(pyspark.__path__[0])
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a Java that does not live long."""

_STARTED = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = re.compile(r"Successfully registered with master")


def environment():
    """What Spark's own processes are started with: loopback, our Java, and no path to our sources."""
    hidden = {"PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"}
    return {
        **{name: value for name, value in os.environ.items() if name not in hidden},
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": f"{QUICK} -Dspark.master.rest.enabled=false",
    }


class Daemon:
    """A Master or a Worker, in a process group of its own."""

    def __init__(self, *arguments, cwd):
        self._process = subprocess.Popen(
            [SPARK_HOME / "bin" / "spark-class", *arguments],
            env=environment(),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.pid = self._process.pid
        self.log = []
        self._reading = None

    def await_line(self, wanted):
        """What it logs first that matches; all that it logs later is read by a thread, or it would stop."""
        for line in self._process.stderr:
            self.log.append(line)
            found = wanted.search(line)
            if found:
                self._reading = threading.Thread(target=self.log.extend, args=(self._process.stderr,))
                self._reading.start()
                return found
        raise AssertionError("it ended: " + "".join(self.log))

    def kill(self):
        """With all that it has started, at once; Python processes go when their executor has gone."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        if self._reading is not None:
            self._reading.join()
        self._process.stderr.close()


class Cluster:
    """One Master and two Workers of one core each, bound to loopback."""

    def __init__(self, folder):
        self._folder = folder
        self.daemons = []
        try:
            self.master = self._start("org.apache.spark.deploy.master.Master", "--port", "0")
            self.url = self.master.await_line(_STARTED)[1]
            self.workers = [self.start_worker(wait=False) for _ in range(2)]
            for worker in self.workers:
                worker.await_line(_REGISTERED)
        except BaseException:
            self.stop()
            raise

    def start_worker(self, *, wait=True):
        work = self._folder / f"work{len(self.daemons)}"
        resources = "--cores", "1", "--memory", "1g", "--work-dir", str(work)
        worker = self._start("org.apache.spark.deploy.worker.Worker", *resources, self.url)
        if wait:
            worker.await_line(_REGISTERED)
        return worker

    def _start(self, kind, *arguments):
        daemon = Daemon(kind, "--host", "127.0.0.1", "--webui-port", "0", *arguments, cwd=self._folder)
        self.daemons.append(daemon)
        return daemon

    def stop(self):
        for daemon in reversed(self.daemons):
            daemon.kill()


def executors_of(worker):
    """The processes of a Worker's executors."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name, in parentheses, may hold anything; the parent is the second field after it.
            is_child = int(status.read_text().rpartition(")")[2].split()[1]) == worker
            if is_child and b"CoarseGrainedExecutorBackend" in status.with_name("cmdline").read_bytes():
                found.append(int(status.parent.name))
    return found


def bare_python(folder, modules=NEEDED):
    """An interpreter that has these modules, and beside them only what comes with Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = Path(folder).glob("lib/python*/site-packages")
    for name in modules:
        home = Path(find_spec(name).origin).parent
        (packages / name).symlink_to(home)
        libraries = home.parent / f"{name}.libs"
        if libraries.is_dir():
            (packages / libraries.name).symlink_to(libraries)
    return str(Path(folder, "bin", "python"))


def submit(url, python, package, entry, *arguments):
    """Start a script by spark-submit, its driver in this Python and its executors in another."""
    settings = {
        "spark.pyspark.driver.python": sys.executable,
        "spark.pyspark.python": python,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": QUICK,
        "spark.executor.extraJavaOptions": QUICK,
        "spark.executor.memory": "512m",
        "spark.ui.enabled": "false",
    }
    configured = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    return subprocess.Popen(
        [
            SPARK_HOME / "bin" / "spark-submit",
            "--master",
            url,
            *configured,
            "--py-files",
            package,
            entry,
            *arguments,
        ],
        env=environment(),
        cwd=Path(package).parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
