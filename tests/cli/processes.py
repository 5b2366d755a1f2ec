"""Commands as processes of their own."""

import os
import subprocess
import sys
from contextlib import contextmanager


@contextmanager
def process(*words, env=()):
    started = subprocess.Popen(
        [sys.executable, "-m", "everview", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **dict(env)},
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


@contextmanager
def serving(*words):
    """A server, and the address that it prints."""
    with process("serve", "--port", "0", *words) as server:
        line = server.stdout.readline()
        assert line.startswith("serving "), server.stderr.read()
        yield server, line.split()[-1]
