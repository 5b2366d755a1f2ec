"""What a page asks its reader to type: files to write, and lines for terminals with what they answer.

A block with a title is part of the story. `sql`, `python`, `csv`, … blocks are files of that name; `console`
blocks are typed into the terminal of that name, in which lines that begin with `$ ` are commands, `^C` is
Ctrl-C, and the rest is what is shown. A comment `<!-- again -->` before a block means that a reader who does
not see it yet tries again.
"""

import itertools
import re
from dataclasses import dataclass, field
from pathlib import Path

BLOCK = re.compile(
    r'^(?P<again><!-- again -->\n)?```(?P<kind>\w+) title="(?P<title>[^"]+)"\n(?P<body>.*?)^```$',
    re.DOTALL | re.MULTILINE,
)
INTERRUPT = "^C"


@dataclass
class File:
    name: str
    text: str


@dataclass
class Typed:
    """A line, and what the page shows below it. One that `stays` runs until Ctrl-C."""

    line: str
    shown: list[str] = field(default_factory=list)
    stays: bool = False


@dataclass
class Block:
    terminal: str
    typed: list[Typed]
    again: bool


def story(page: Path) -> list[File | Block]:
    found: list[File | Block] = []
    for match in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if match["kind"] == "console":
            found.append(Block(match["title"], _typed(match["body"]), bool(match["again"])))
        else:
            found.append(File(match["title"], match["body"]))
    _mark_those_that_stay([block for block in found if isinstance(block, Block)])
    return found


def _typed(body: str) -> list[Typed]:
    typed: list[Typed] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            typed.append(Typed(line[2:]))
        elif line == INTERRUPT:
            typed.append(Typed(INTERRUPT))
        else:
            typed[-1].shown.append(line)
    return typed


def _mark_those_that_stay(blocks: list[Block]) -> None:
    for terminal in {block.terminal for block in blocks}:
        lines = [typed for block in blocks if block.terminal == terminal for typed in block.typed]
        for typed, following in itertools.pairwise(lines):
            typed.stays = following.line == INTERRUPT


def as_pattern(shown: str, names: dict[str, str]) -> re.Pattern[str]:
    """A shown line: `…` is anything, and a word such as `7vN0…` names what really stands there."""
    parts = []
    for word in re.split(r"(\S*…\S*)", shown):
        if "…" not in word:
            parts.append(re.escape(word))
        elif word.strip("….,()") == "":
            parts.append(re.escape(word).replace("…", ".*?"))
        else:
            names.setdefault(f"g{len(names)}", word)
            group = next(name for name, known in names.items() if known == word)
            parts.append(f"(?P<{group}>\\S+)")
    return re.compile("".join(parts))
