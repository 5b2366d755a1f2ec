"""A text, its statements, and the place in it that an error is about.

sqlglot keeps offsets on names, literals and calls only; a node without one stands where its first
descendant does, and a modifier without any (FOR UPDATE) where its keyword does.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import TokenType

from everview.errors import ProgramError
from everview.language.sql.dialect import Dialect, Token
from everview.language.sql.misspelt import misspelt

__all__ = ["Source", "folded", "nearest", "words"]


def folded(identifier: exp.Expr) -> str:
    """A name as PostgreSQL takes it: lower case unless quoted."""
    name = str(identifier.this)
    return name if identifier.args.get("quoted") else name.lower()


def words(node: exp.Expr) -> str:
    """What kind of thing a node is, in the words of SQL: WithinGroup is WITHIN GROUP."""
    return re.sub("([a-z])([A-Z])", r"\1 \2", type(node).__name__).upper()


def nearest(name: str, names: Iterable[str], *, what: str = "did you mean") -> str | None:
    """A hint that names what was probably meant, if anything is near."""
    close = get_close_matches(name, list(names), n=1)
    return f"{what} {close[0]}?" if close else None


class Source:
    """The text of a program or query."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._line_starts = [0, *(found.end() for found in re.finditer("\n", text))]
        try:
            self.tokens: list[Token] = list(Dialect().tokenize(text))
        except TokenError as error:
            raise self._token_error(error) from None
        self._starts = [token.start for token in self.tokens]

    def statements(self) -> Iterator[tuple[exp.Expr, list[Token]]]:
        """Each statement's tree, with its tokens."""
        chunk: list[Token] = []
        for token in (*self.tokens, None):
            if token is not None and token.token_type is not TokenType.SEMICOLON:
                chunk.append(token)
            elif chunk:
                yield self._parse(chunk), chunk
                chunk = []

    def _parse(self, tokens: list[Token]) -> exp.Expr:
        try:
            trees = Dialect().parser().parse(tokens, self.text)
        except ParseError as error:
            raise self._parse_error(error) from None
        tree = trees[0] if trees else None
        if not isinstance(tree, exp.Expr) or isinstance(tree, exp.Command):
            self._refuse_inner(tokens)
            first = tokens[0]
            raise self.error_at(
                first.start,
                f"{first.text.upper()} … is not a statement that Everview knows, or is misspelt",
                hint="programs hold CREATE TABLE and CREATE MATERIALIZED VIEW",
            )
        return tree

    def _refuse_inner(self, tokens: list[Token]) -> None:
        """Sqlglot gives up on a CREATE whose query has an error; parse the query alone to find it."""
        start = next((i for i, token in enumerate(tokens) if token.token_type is TokenType.ALIAS), None)
        if start is not None and tokens[0].text.upper() == "CREATE":
            try:
                Dialect().parser().parse(tokens[start + 1 :], self.text)
            except ParseError as error:
                raise self._parse_error(error) from None

    def _parse_error(self, error: ParseError) -> ProgramError:
        first = error.errors[0] if error.errors else {}
        highlight = str(first.get("highlight") or "")
        line, column = first.get("line"), first.get("col")
        reason = str(first.get("description") or error).split("\n")[0].rstrip(". ")
        if not isinstance(line, int) or not isinstance(column, int):
            return ProgramError(f"syntax error: {reason}")
        near = f" at {highlight!r}" if highlight else ""
        if reason.startswith("Invalid expression"):
            reason = "this is not expected here"
        elif reason.startswith("Required keyword"):
            reason = "something is missing after it"
        reason = re.sub(r" but got <Token.*", "", reason)  # the parser's own words for a place in the text
        begins = max(column - len(highlight) + 1, 1)
        offset = self._line_starts[line - 1] + begins - 1
        return ProgramError(
            f"syntax error{near}: {reason[:1].lower()}{reason[1:]}",
            line=line,
            column=begins,
            hint=misspelt(self.tokens[: bisect.bisect_right(self._starts, offset)]),
        )

    def _token_error(self, error: TokenError) -> ProgramError:
        opened = _unclosed(self.text)
        if opened is None:
            return ProgramError(f"syntax error: {str(error).splitlines()[0]}")
        mark = self.text[opened]
        return self.error_at(opened, f"syntax error: what {mark} begins here is never closed")

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column, from 1, of an offset in the text."""
        line = sum(start <= offset for start in self._line_starts)
        return line, offset - self._line_starts[line - 1] + 1

    def offset(self, node: exp.Expr) -> int | None:
        """Where a node begins: at its own word, else at its first descendant's, else at its parent's."""
        own = node.meta.get("start")
        if isinstance(own, int):
            return own
        starts: list[int] = [n.meta["start"] for n in node.walk() if "start" in n.meta]
        if starts:
            return min(starts)
        return self.offset(node.parent) if node.parent is not None else None

    def error_at(self, offset: int, message: str, *, hint: str | None = None) -> ProgramError:
        """An error about the word at this offset."""
        line, column = self.place(offset)
        return ProgramError(message, line=line, column=column, hint=hint)

    def error(
        self, node: exp.Expr, message: str, *, hint: str | None = None, word: str | None = None
    ) -> ProgramError:
        """An error about a node; `word` is the keyword that is to blame, where it stands nearest."""
        offset = self.offset(node)
        if word is not None:
            near = offset or 0
            places = [token.start for token in self.tokens if _is(token, word)]
            offset = min(places, key=lambda start: abs(start - near), default=offset)
        if offset is None:
            # TRUE and NULL have no place; the statement has.
            offset = self.tokens[0].start if self.tokens else 0
        return self.error_at(offset, message, hint=hint)

    def before(self, node: exp.Expr, *, skip_parentheses: bool = False) -> Token | None:
        """The token before a node."""
        offset = self.offset(node)
        index = bisect.bisect_left(self._starts, offset or 0) - 1
        while skip_parentheses and index >= 0 and self.tokens[index].token_type is TokenType.L_PAREN:
            index -= 1
        return self.tokens[index] if index >= 0 else None

    def words_before(self, offset: int) -> Iterator[str]:
        """The words that stand before an offset, in capital letters, the nearest first."""
        for index in range(bisect.bisect_left(self._starts, offset) - 1, -1, -1):
            yield self.tokens[index].text.upper()

    def only(self, node: exp.Expr, allowed: Iterable[str], refusals: Mapping[str, tuple[str, str]]) -> None:
        """Refuse a node that carries anything but what is allowed: nothing is ever ignored in silence.

        `refusals` says, per part, which keyword is to blame and what to write instead.
        """
        known = set(allowed)
        for key, value in node.args.items():
            if key in known or value is None or value is False or value == []:
                continue
            word, hint = refusals.get(key, (key.strip("_").upper(), ""))
            raise self.error(
                node,
                "a schema's name is not supported here" if word == "." else f"{word} is not supported here",
                hint=hint or None,
                word=word.split()[0],
            )


def _is(token: Token, word: str) -> bool:
    return token.text.upper().split(" ")[0] == word.upper()


def _unclosed(text: str) -> int | None:
    """Where the quotation or comment begins that the text never closes."""
    position = 0
    while position < len(text):
        rest = text[position:]
        mark = next((m for m in ("--", "/*", "'", '"') if rest.startswith(m)), None)
        if mark is None:
            position += 1
            continue
        closing = {"--": "\n", "/*": "*/"}.get(mark, mark)
        end = text.find(closing, position + len(mark))
        if end < 0:
            return None if mark == "--" else position
        position = end + len(closing)
    return None
