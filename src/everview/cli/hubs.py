"""`everview hub`: the pipeline on Spark and a server for devices, in one process."""

from __future__ import annotations

import re
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everview.cli.listening import (
    AllowWrite,
    Cert,
    Host,
    Insecure,
    Key,
    Port,
    TokensFile,
    check_free,
    check_tokens,
    say_ready,
)
from everview.cli.logs import LogFormat, LogFormatOption, LogLevel, LogLevelOption, logging_to_stderr
from everview.cli.options import Debug
from everview.cli.programs import loaded_program
from everview.errors import EverviewError, StoreError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from everview.language.program import Program

__all__ = ["hub"]

_ANSWERING, _WAITING = 2, 126
"""More would not answer more, having the same interpreter; and hundreds of devices may come at once."""

_NICE = 10
"""Refreshes go first, by nine to one; with more, devices would wait for whatever else the machine does."""

_SWITCH_SECONDS = 0.0005
"""How long a thread that answers may keep the interpreter from one that refreshes. Python's own 5 ms, at
every answer of Spark's, add up."""

_MASTER = re.compile(r"local(\[[\w*, ]+\])?|(spark|k8s|mesos)://\S+|yarn|local-cluster\[.+\]")


def hub(  # noqa: PLR0913 - as many as there are options
    *,
    store: Annotated[
        str, typer.Option("--store", metavar="URI", help="The hub's folder or URI.", show_default=False)
    ],
    program: Annotated[Path, typer.Option("--program", "-p", help="The program's file.", show_default=False)],
    master: Annotated[str, typer.Option("--master", help="Spark's master.")] = "local[*]",
    conf: Annotated[
        list[str] | None,
        typer.Option(
            "--conf", metavar="KEY=VALUE", help="A setting of Spark's; may be repeated.", show_default=False
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="KEY=VALUE",
            help="An option of an object store; may be repeated. Secrets are better in the environment.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[str, typer.Option("--name", "-n", help="The name that devices know it by.")] = "hub",
    trigger: Annotated[
        str, typer.Option("--trigger", metavar="TIME", help="How often to look for what has arrived.")
    ] = "1 second",
    freshness: Annotated[
        float | None,
        typer.Option(
            "--freshness",
            metavar="SECONDS",
            help="Publish Delta tables, when those that are published are older.",
            show_default=False,
        ),
    ] = None,
    backlog: Annotated[
        int,
        typer.Option("--backlog", metavar="ROWS", min=1, help="Refuse pushes while more rows wait."),
    ] = 2_000_000,
    host: Host = "127.0.0.1",
    port: Port = 8440,
    tokens: TokensFile = None,
    insecure: Insecure = False,
    cert: Cert = None,
    key: Key = None,
    allow_write: AllowWrite = False,
    log_format: LogFormatOption = LogFormat.TEXT,
    log_level: LogLevelOption = LogLevel.INFO,
    debug: Debug = False,
) -> None:
    """Run the pipeline on Spark, reachable over HTTP for devices and people, until SIGINT or SIGTERM.

    It then takes no more requests, finishes the refresh that is under way, and ends.

    Example: everview hub --store /data/rescue --program rescue.sql --port 8440 --tokens tokens.toml
    """
    check_tokens(tokens, insecure=insecure)
    if not _MASTER.fullmatch(master.strip()):
        raise typer.BadParameter(f"{master!r} is no master of Spark's; say local[*] or spark://host:port")
    settings = dict(_setting(one) for one in conf or [])
    options = dict(_option(one) for one in option or [])
    parsed = loaded_program(program)
    from everview.cli.refresh_meter import RefreshMeter  # noqa: PLC0415 - not needed for --help
    from everview.cli.stopping import until_stopped  # noqa: PLC0415
    from everview.cli.sync_meter import SyncMeter  # noqa: PLC0415
    from everview.server import Limits, Listener, Tokens  # noqa: PLC0415

    with ExitStack() as stack:
        stack.enter_context(logging_to_stderr(log_format, log_level))
        access = None if tokens is None else Tokens(tokens, program=parsed)
        check_free(host, port)
        _check_store(store, options, parsed)
        sys.setswitchinterval(_SWITCH_SECONDS)
        spark = _session(master.strip(), name, settings, debug=debug)
        stack.callback(spark.stop)
        from everview.console import Console  # noqa: PLC0415
        from everview.console.hubs import HubSubject  # noqa: PLC0415
        from everview.hub import Hub  # noqa: PLC0415 - it needs Spark
        from everview.server.hubs import HubService  # noqa: PLC0415

        opened = stack.enter_context(
            Hub.open(
                store,
                parsed,
                spark=spark,
                name=name,
                freshness=freshness,
                options=options or None,
            )
        )
        with SyncMeter() as meter:
            opened.transport(meter).close()  # makes the gate, which may take a while
        stopped = stack.enter_context(until_stopped())
        service = HubService(opened, trigger, stopped.set, backlog_rows=backlog)
        listener = Listener(
            opened.replica,
            access,
            host=host,
            port=port,
            cert=cert,
            key=key,
            service=service,
            limits=Limits(answering=_ANSWERING, waiting=_WAITING),
            nice=_NICE,
            pages=Console(HubSubject(opened, service), writes=allow_write),
        )
        stack.enter_context(RefreshMeter(opened))
        stack.callback(service.stop)
        service.start()
        stack.enter_context(listener)
        say_ready(store, listener, tokens=access is not None, secure=cert is not None)
        stopped.wait()
    if service.pipeline.is_lost:
        raise StoreError(str(service.pipeline.error), path=store)


def _check_store(uri: str, options: dict[str, str], program: Program) -> None:
    """Refuse a store that cannot be opened before Spark is started, which takes a while."""
    import everview  # noqa: PLC0415 - not needed for --help

    _ = everview.Hub  # or an error that says which extra is missing
    from everview.hub.files import open_files  # noqa: PLC0415
    from everview.hub.lease import Lock  # noqa: PLC0415
    from everview.hub.record import latest  # noqa: PLC0415

    files = open_files(uri, options or None)
    lock = Lock.take(files)
    if lock is not None:
        lock.give_up()
    latest(files, program.hash)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        raise typer.BadParameter(f"{text!r} is no setting of Spark's; say spark.some.name=value")
    return name, value


def _option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"{name!r} has no value; say name=value, such as aws_region=eu-north-1")
    return name, value


def _session(master: str, name: str, settings: dict[str, str], *, debug: bool) -> SparkSession:
    from everview.engines.spark.session import start_session  # noqa: PLC0415

    try:
        return start_session(master=master, app_name=f"everview hub {name}", settings=settings)
    except EverviewError:
        raise
    except Exception as error:
        if debug:
            raise
        first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise EverviewError(f"Spark does not start with master {master}: {first.strip()}") from error
