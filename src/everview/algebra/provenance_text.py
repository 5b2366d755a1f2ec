"""Reading provenance: sums, products, parentheses, ids."""

from __future__ import annotations

import re

from everview.algebra.ids import PLAIN, read_id
from everview.algebra.provenance import Provenance
from everview.errors import ProgramError

_TOKEN = re.compile(
    rf"\s*(?:(?P<id>0x(?:[0-9a-f]{{2}})+|#-?\d+|{PLAIN.pattern}|\"(?:[^\"\\]|\\.)+\")|(?P<sign>[01+·*()]))"
)


def parse(text: str) -> Provenance:
    """Read a sum of products; the result is reduced.

    sum := product ('+' product)*, product := factor ('·' factor)*, factor := id | 0 | 1 | '(' sum ')';
    `*` may stand for `·`.
    """
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._tokens: list[tuple[str, str, int]] = []
        position = 0
        while position < len(text.rstrip()):
            match = _TOKEN.match(text, position)
            if match is None:
                rest = text[position:].lstrip()
                raise self._error(f"cannot read {rest[:20]!r}", len(text) - len(rest))
            kind = str(match.lastgroup)
            self._tokens.append((kind, match[kind], match.start(kind)))
            position = match.end()

    def read(self) -> Provenance:
        whole = self._sum()
        if self._at < len(self._tokens):
            _, word, position = self._tokens[self._at]
            raise self._error(f"did not expect {word!r} here", position)
        return whole

    def _sum(self) -> Provenance:
        total = self._product()
        while self._take("+"):
            total += self._product()
        return total

    def _product(self) -> Provenance:
        total = self._factor()
        while self._take("·") or self._take("*"):
            total *= self._factor()
        return total

    def _factor(self) -> Provenance:
        if self._at == len(self._tokens):
            raise self._error("an id, 0, 1 or a parenthesis is missing", len(self._text))
        kind, word, position = self._tokens[self._at]
        self._at += 1
        if kind == "id":
            return Provenance.of(read_id(word))
        if word == "(":
            inner = self._sum()
            if not self._take(")"):
                raise self._error("this parenthesis is not closed", position)
            return inner
        if word in "01":
            return Provenance.ONE if word == "1" else Provenance.ZERO
        raise self._error(f"did not expect {word!r} here", position)

    def _take(self, sign: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at][:2] == ("sign", sign):
            self._at += 1
            return True
        return False

    def _error(self, message: str, position: int) -> ProgramError:
        return ProgramError(
            f"bad provenance: {message}", line=1, column=position + 1, hint="write it as in t1·t3 + t2"
        )
