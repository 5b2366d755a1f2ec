"""Text with words left out, put in or swapped is refused as an error of ours, or bound and evaluated."""

import random
import re
from pathlib import Path

import pytest

from everview.engines.reference import evaluate
from everview.errors import DataError, ProgramError
from everview.language.program import Program

FIXTURES = Path(__file__).parent / "fixtures"
WORD = re.compile(r"\d+\.\d+|\w+\.\w+|\w+|'[^']*'|::|<=|>=|<>|!=|\|\||\S")


def texts(name, separator):
    parts = (FIXTURES / name).read_text(encoding="utf-8").strip().split(separator)
    return [part for part in parts if part.strip() and not part.startswith("#")]


QUERIES = [text.split("\n----")[0] for text in texts("queries.txt", "\n\n")]
QUERIES += ["SELECT " + text.split(" => ")[0] for text in texts("expressions.txt", "\n")]
PROGRAMS = [text.split("\n----")[0] for text in texts("errors.txt", "\n\n")]
DECLARATIONS = [text for text in texts("tables.sql", ";\n") if text.startswith("CREATE")]
WORDS = [word for text in QUERIES + PROGRAMS for word in WORD.findall(text)]


def mutated(text, chance):
    words = WORD.findall(text)
    for _ in range(chance.choice([1, 1, 2])):
        place, other = chance.randrange(len(words)), chance.randrange(len(words))
        match chance.choice(["drop", "put", "replace", "swap"]):
            case "drop" if len(words) > 1:
                del words[place]
            case "put":
                words.insert(place, chance.choice(WORDS))
            case "replace":
                words[place] = chance.choice(WORDS)
            case _:
                words[place], words[other] = words[other], words[place]
    return " ".join(words)


@pytest.mark.parametrize("seed", range(8))
def test_mutated_text_never_breaks_the_binder(seed):
    chance = random.Random(seed)
    program = Program.parse(";".join(DECLARATIONS))
    empty = {name: [] for name in program.relations}
    evaluated = refused = 0
    unplaced = []
    for _ in range(300):
        text = mutated(chance.choice(QUERIES), chance)
        try:
            statement = program.bind(text)
        except ProgramError as error:
            refused += 1
            if error.line is None:
                unplaced.append(str(error))
            continue
        except DataError:
            refused += 1
            continue
        if not statement.parameters:
            evaluated += 1
            evaluate(statement.plan, empty)
    for _ in range(60):
        text = mutated(chance.choice(PROGRAMS + DECLARATIONS), chance)
        try:
            Program.parse(text)
        except ProgramError:
            refused += 1
    assert [error for error in unplaced if not error.startswith("one statement")] == []
    assert evaluated > 10
    assert refused > 100
