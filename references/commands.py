"""The command reference: every command, argument and option, from the code that reads them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import typer.main

from everview.cli.app import app
from references.markdown import code, generated, table

__all__ = ["page"]


def page() -> str:
    """The whole page."""
    about = (
        "Every command with its arguments and options, written from the code. "
        "[The command line](../CLI.md) explains them, with what they print and read. "
        "`--debug`, which all have, shows the traceback of an error."
    )
    lines = generated("Command reference", about)
    group: Any = typer.main.get_command(app)
    lines += table(
        ("command", ""),
        ((f"[`everview {name}`](#everview-{name})", _first(one)) for name, one in group.commands.items()),
    )
    for name, command in group.commands.items():
        lines += _command(name, command)
    return "\n".join(lines).rstrip() + "\n"


def _command(name: str, command: Any) -> Iterator[str]:
    text, _, example = _help(command).partition("Example: ")
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and "--help" not in one.opts]
    options = [one for one in options if "--debug" not in one.opts]
    usage = " ".join(
        [
            f"everview {name}",
            *(_argument(one) for one in arguments),
            *(f"{one.opts[0]} {_value(one)}" for one in options if one.required),
            "[OPTION]…",
        ]
    )
    yield from [f"## `everview {name}`", "", "```console", f"$ {usage}", "```", ""]
    yield from [" ".join(text.split()), ""]
    rows = [(code(_argument(one)), one.help or "", "") for one in arguments]
    rows += [
        (" ".join([code(", ".join(one.opts)), code(_value(one))]).strip(), one.help or "", _default(one))
        for one in options
    ]
    if rows:
        yield from table(("", "", "unless said"), rows)
    if example:
        yield from [f"For example: {code(' '.join(example.split()))}", ""]


def _help(command: Any) -> str:
    return inspect.cleandoc(command.help or "")


def _first(command: Any) -> str:
    return " ".join(_help(command).split("\n\n")[0].split())


def _argument(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper()).strip("{}").replace("...", "…")


def _value(parameter: Any) -> str:
    """What an option takes; a flag takes nothing."""
    if parameter.is_flag:
        return ""
    if parameter.metavar:
        return str(parameter.metavar)
    choices = getattr(parameter.type, "choices", None)
    if choices:
        return "|".join(str(getattr(one, "value", one)) for one in choices)
    kind = str(parameter.type.name).upper()
    return {"STR": "TEXT", "INT RANGE": "N", "INTEGER RANGE": "N", "INT": "N", "FLOAT": "NUMBER"}.get(
        kind, kind
    )


def _default(parameter: Any) -> str:
    if parameter.required:
        return "has to be said"
    if isinstance(parameter.show_default, str):
        return parameter.show_default
    value = getattr(parameter.default, "value", parameter.default)
    if parameter.is_flag or value in (None, "", []):
        return ""
    return code(str(value))
