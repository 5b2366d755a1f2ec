"""`everview hub`, as far as it needs no Spark; with it, see tests/hub/test_devices.py."""

import json
import logging
import sys

import pytest
from typer.testing import CliRunner

from everview.cli import hubs, refresh_meter
from everview.cli.app import app
from everview.cli.logs import LogFormat, LogLevel, logging_to_stderr
from everview.errors import EverviewError
from everview.hub.timing import Timing


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "say either --tokens FILE or --insecure"),
        (["--insecure", "--tokens", "t.toml"], "say either --tokens FILE or --insecure"),
        (["--insecure", "--master", "moon"], "is no master of Spark's"),
        (["--insecure", "--conf", "spark.x"], "is no setting of Spark's"),
        (["--insecure", "--conf", "x=y"], "is no setting of Spark's"),
        (["--insecure", "--option", "aws_region"], "has no value"),
        (["--insecure", "--backlog", "0"], "0 is not in the range"),
        (["--insecure", "--log-format", "xml"], "is not one of"),
    ],
)
def test_what_is_wrong_with_the_command_is_said_before_spark_starts(here, words, said):
    done = CliRunner().invoke(
        app, ["hub", "--store", "h", "--program", "p.sql", *words], env={"COLUMNS": "200", "TERM": "dumb"}
    )
    assert done.exit_code == 1
    assert said in done.stderr


def test_a_program_or_tokens_that_are_not_there_are_one_line(here, fails):
    assert "no.sql" in fails("hub", "--store", "h", "--program", "no.sql", "--insecure")
    assert "no.toml" in fails("hub", "--store", "h", "--program", "p.sql", "--tokens", "no.toml")


def test_a_spark_that_does_not_start_is_one_line(here, fails, monkeypatch):
    def broken(**_):
        raise RuntimeError("\n\nJava is out of order\n\tat Some.java:1")

    monkeypatch.setattr("everview.engines.spark.session.start_session", broken)
    told = fails("hub", "--store", "h", "--program", "p.sql", "--insecure", "--master", "local[3]")
    assert told == "Spark does not start with master local[3]: Java is out of order"
    with pytest.raises(RuntimeError):
        hubs._session("local[3]", "hub", {}, debug=True)
    with pytest.raises(EverviewError):
        hubs._session("local[3]", "hub", {}, debug=False)


def test_a_line_of_the_log_is_one_line_in_both_formats(capsys):
    for look in LogFormat:
        with logging_to_stderr(look, LogLevel.INFO):
            logger = logging.getLogger("everview.hub")
            logger.info("two\nlines", extra={"event": "refresh", "fields": {"refresh": 7}})
            logger.debug("not this")
            logging.getLogger("py4j").warning("nor this")
    text, coded = [line for line in capsys.readouterr().err.splitlines() if "nor this" not in line]
    assert text.endswith("Z info two lines")
    found = json.loads(coded)
    assert (found["level"], found["event"], found["message"], found["refresh"]) == (
        "info",
        "refresh",
        "two lines",
        7,
    )
    assert logging.getLogger("everview").handlers == []


class Clock:
    now = 0.0

    def monotonic(self):
        return self.now


class Refreshing:
    """A hub, as far as its refreshes are watched."""

    def __init__(self):
        self.timing = Timing()

    @property
    def spark(self):
        raise RuntimeError("it is stopping")


def test_a_bar_follows_a_refresh_that_takes_long(monkeypatch, capsys):
    clock, hub = Clock(), Refreshing()
    for module in ("everview.cli.refresh_meter.time", "everview.hub.timing.time"):
        monkeypatch.setattr(module, clock)
    meter = refresh_meter.RefreshMeter(hub)
    with hub.timing.refresh():
        with hub.timing.of("export"):
            clock.now = 0.9
            meter.look()
            assert meter._bar is None
            hub.timing.count(50_000)
            clock.now = 1.1
            meter.look()
            (task,) = meter._bar[0].tasks
            assert (task.fields["stage"], task.fields["rows"]) == ("export", "50,000 rows")
        with hub.timing.of("compute"):
            meter.look()
            (task,) = meter._bar[0].tasks
            assert (task.fields["stage"], task.fields["rows"], task.total) == ("compute", "", None)
    meter.look()
    assert meter._bar is None
    assert hub.timing.seconds == {"export": 1.1, "compute": 0.0}
    capsys.readouterr()


def test_nobody_is_shown_a_bar_who_is_not_watching(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    with refresh_meter.RefreshMeter(Refreshing()) as meter:
        assert meter._thread is None
