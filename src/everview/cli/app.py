"""The command `everview`: its subcommands, and what becomes of errors.

Exit status 0, or 1 with one line on standard error.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from everview.cli import (
    backups,
    benchmarks,
    conflicts,
    consoles,
    dropping,
    examining,
    giving_up,
    hubs,
    migrating,
    packaging,
    programs,
    reading,
    repairing,
    serving,
    simulation,
    syncing,
    windows,
    writing,
)
from everview.cli.missing import missing_part, told_defect
from everview.errors import EverviewError

__all__ = ["app"]


class _Group(TyperGroup):
    """Runs a subcommand; says in one line what went wrong."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Read the options before the subcommand; without a word, print the help."""
        try:
            return super().parse_args(ctx, args or ["--help"])
        except TyperException as error:
            _misunderstood(ctx, error)

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        """Run it; an error becomes a line and exit status 1, or with --debug a traceback."""
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except TyperException as error:
            _misunderstood(ctx, error)
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(130) from None  # what a shell expects of SIGINT
        except EverviewError as error:
            _give_up(ctx, error, str(error))
        except OSError as error:
            _give_up(ctx, error, f"{error.filename}: {error.strerror}" if error.filename else str(error))
        except MemoryError as error:
            _give_up(ctx, error, "there is not enough memory; for huge files say --batch 100000")
        except ModuleNotFoundError as error:
            _give_up(ctx, error, missing_part(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is one line without --debug
            _give_up(ctx, error, told_defect(error))


def _misunderstood(ctx: typer.Context, error: TyperException) -> NoReturn:
    """Say in one line what is wrong with the command, and where its help is."""
    where = getattr(error, "ctx", None) or ctx
    typer.secho("error: ", nl=False, err=True, fg="red", bold=True)
    said = " ".join(error.format_message().split()).rstrip(".")
    typer.echo(f"{said} (see `{where.command_path} --help`)", err=True)
    raise typer.Exit(1) from None


def _give_up(ctx: typer.Context, error: BaseException, message: str) -> NoReturn:
    if ctx.meta.get("everview.debug"):
        raise error
    line = " ".join(message.split("\n")).strip()
    typer.secho("error: ", nl=False, err=True, fg="red", bold=True)
    typer.echo(line, err=True)
    raise typer.Exit(1) from None


app = typer.Typer(
    cls=_Group,
    name="everview",
    help="Materialized views that every site can read and write into, online or offline.",
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:  # noqa: FBT001 - typer calls it so
    if asked:
        from importlib.metadata import version  # noqa: PLC0415 - slow, and rarely asked

        sys.stdout.write(f"everview {version('everview')}\n")
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


for _command in (
    programs.init,
    programs.check,
    writing.insert,
    writing.delete,
    windows.close,
    reading.query,
    reading.why,
    reading.explain,
    reading.status,
    conflicts.conflicts,
    syncing.sync,
    serving.serve,
    hubs.hub,
    serving.token,
    backups.backup,
    backups.restore,
    migrating.migrate,
    dropping.drop,
    examining.doctor,
    repairing.repair,
    giving_up.give_up,
    packaging.package,
    simulation.simulate,
    consoles.console,
    benchmarks.bench,
):
    app.command()(_command)
