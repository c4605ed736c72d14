"""The tokenizer of LLM query lines: quoted texts, numbers, references, operators.

Language models do not escape apostrophes: `head_entity='Child's Play'` is common. So a quote closes a
text only if what follows can follow an argument (a comma and a parameter, a closing parenthesis that
ends the call, an operator, the end of the line). If no quote of the line qualifies, the first one
before a comma or a parenthesis closes it. Each pattern is anchored to one quote and looks at text up
to the next, and a failed search is remembered, so scanning is linear in the length of the line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeAlias
from typing import Literal as OneOf

from condgraph.engine.bounds import check
from condgraph.engine.errors import ParseError
from condgraph.languages.llm.syntax.tree import Notice, Span

SINGLE: Final = "'‘’‚‛´′"
DOUBLE: Final = '"“”„‟″'
OPERATORS: Final = {
    "=": "=",
    "==": "=",
    "===": "=",
    "!=": "!=",
    "!==": "!=",
    "<>": "!=",
    "≠": "!=",
    "<": "<",
    ">": ">",
    "<=": "<=",
    "=<": "<=",
    "≤": "<=",
    ">=": ">=",
    "=>": ">=",
    "≥": ">=",
}
#: Spellings that are accepted silently; others are normalised with a notice.
PLAIN_OPERATORS: Final = frozenset({"=", "!=", "<", ">", "<=", ">=", "≤", "≥", "≠"})

Kind: TypeAlias = OneOf["text", "number", "word", "reference", "operator", "symbol", "end"]


@dataclass(frozen=True, slots=True)
class Token:
    """A token: its kind, its text (unquoted and unescaped; the label of a reference), and its position."""

    kind: Kind
    text: str
    span: Span
    #: The position of the text between the quotes.
    inner: Span = (0, 0)


_QUOTE = f"[{SINGLE}{DOUBLE}]"
_NAME = r"[^\W\d]\w*"  # users append + to make it possessive
_OP = "[=<>!≤≥≠~]"
_REF = r"output_(?:of_)?query"
_ARGUMENT = (
    rf"(?:{_NAME}+\s*+{_OP}|{_QUOTE}|{_REF}|{_NAME}+\(|[\[{{]|-?\d[\d.,]*+\s*+\)"
    r"|(?:return|else|then|None|True|False|relation|(?:head|tail)_entity)\b)"
)
# Possessive repetitions: a failed attempt never rescans the same characters.
_AFTER = rf"""(?=
      \s*+,\s*+{_ARGUMENT}
    | \s*+[)\]}}][)\]}}\s]*+(?:\Z|[{DOUBLE}`;:?.\[]|,\s*+{_ARGUMENT}|{_OP}|[-+*/%]\s*+(?:{_QUOTE}?{_REF}|{_NAME}+\()
                              |(?:and|or|then|else|in|if|return|not)\b|{_NAME}+\s*+{_OP})
    | \s*+{_OP}++\s*+(?:{_QUOTE}|{_REF}|-?\d|{_NAME}+\s*+[=(])
    | \s*+[-+*/%]\s*+{_QUOTE}?{_REF}
    | \s++(?:and|or|in|if|not)\s++(?:{_QUOTE}|{_REF}|{_NAME}+\(|{_NAME}+\s*+{_OP}|[\[(])
    | \s++(?:then|else)\b
    | \s++(?:relation|head_entity|tail_entity|key|value|source|set\d*+|operator|number)\s*+{_OP}
    | \s*+;
    | \s*+[:?]\s*+(?:{_QUOTE}|{_REF}|return\b)
    | \s*+\[\s*+-?\d
    | [^\S\n]*+(?:[{DOUBLE}][^\S\n]*+)?[.,;`)]*+[^\S\n]*+(?:\n|\Z)
)"""
#: Not after a backslash, unless that is escaped itself: `'c:\\\\'` ends.
_UNESCAPED = r"(?:(?<!\\)|(?<=[^\\]\\\\)|(?<=[^\\]\\\\\\\\))"
_CLOSING: Final = {
    quotes: re.compile(rf"{_UNESCAPED}[{quotes}]" + _AFTER, re.VERBOSE | re.IGNORECASE) for quotes in (SINGLE, DOUBLE)
}
_LIKELY_END: Final = {quotes: re.compile(rf"{_UNESCAPED}[{quotes}](?=\s*[,)\]}}])") for quotes in (SINGLE, DOUBLE)}

REFERENCE: Final = re.compile(r"output_?(?:of_?)?query_?(?P<label>\d+(?:_[a-z]\w*)?)(?![\w])", re.IGNORECASE)
#: Text that means a reference where a result is expected: 'query1', 'step 1', 'result_of_query1'.
AN_OUTPUT: Final = re.compile(
    r"(?:the[ _])?(?:(?:outputs?|results?|answers?)[ _]?(?:(?:of|from)[ _])?)?(?:query|step|output|result)[ _]?(\d+)", re.IGNORECASE
)
_CANONICAL: Final = re.compile(r"output_of_query\d+")
_TOKEN: Final = re.compile(
    rf"""
      (?P<reference>{REFERENCE.pattern})
    | (?P<date>\d{{4}}-\d{{1,2}}(?:-\d{{1,2}})?(?!\w))
    | (?P<thousands>\d{{1,3}}(?:,\d{{3}}){{1,8}}(?:\.\d+)?(?!\w|,\d))
    | (?P<number>(?:\d+(?:\.\d+)?|\.\d+)(?:%(?!\s*[\w(]))?(?!\.?\w))
    | (?P<word>[$€£]?\w+(?:[.&/'’-]\w+)*\.?|[$€£]\d[\d.,]*)
    | (?P<operator>[=<>!≤≥≠~]+)
    | (?P<symbol>[()\[\]{{}},:;?+*/%]|-|−)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_STRAY: Final = re.compile(r"\s*(?:\Z|[,)\]}])")
_ESCAPE: Final = re.compile(rf"\\([nt\\{SINGLE}{DOUBLE}])")
_ESCAPED: Final = {"n": "\n", "t": "\t"}
#: How many tokens are read between two checks of the deadline.
SOME: Final = 256
_OPENERS: Final = "([{"
_CLOSERS: Final = ")]}"


def scan(text: str, start: int, stop: int, wrapper: str | None, notices: list[Notice]) -> list[Token]:
    """Return the tokens of `text[start:stop]` up to the end of the expression, with a final `end` token.

    `wrapper` are the quotes (`SINGLE` or `DOUBLE`) one of which encloses the whole expression, or None.
    Outside all parentheses, the expression ends at such a quote, a line break, a backtick or a closing
    parenthesis. Raises `ParseError`.
    """
    tokens: list[Token] = []
    depth = 0
    at = start
    hopeless: dict[tuple[str, bool], int] = {}
    while at < stop:
        if not len(tokens) % SOME:
            check()
        character = text[at]
        if character == "`" or (character == "\n" and depth == 0):
            break
        if character.isspace():
            at += 1
            continue
        quotes = SINGLE if character in SINGLE else DOUBLE if character in DOUBLE else None
        if quotes is not None:
            if depth == 0 and quotes is wrapper:
                break
            if tokens and tokens[-1].kind == "reference" and tokens[-1].span[1] == at and _is_stray(text, at, stop):
                notices.append(
                    Notice(f"a quote after {text[slice(*tokens[-1].span)]} that opens nothing is left out", (at, at + 1))
                )
                at += 1
                continue
            close = _closing(text, at + 1, stop, quotes, hopeless)
            if close is None:
                if quotes is wrapper and not text[at + 1 : stop].strip(" \t.,;`)"):
                    break
                raise ParseError(
                    "a text that is never closed",
                    span=(at, min(at + 40, stop)),
                    hint="close it with the quote it was opened with; the line may have been cut off",
                )
            tokens.append(Token("text", unescape(text[at + 1 : close]), (at, close + 1), (at + 1, close)))
            at = close + 1
            continue
        match = _TOKEN.match(text, at, stop)
        if match is None:
            raise ParseError(f"{character!r} has no meaning here", span=(at, at + 1), hint="put texts in quotes")
        token = _token(match, notices)
        if token.kind == "symbol":
            if token.text in _OPENERS:
                depth += 1
            elif token.text in _CLOSERS:
                if depth == 0:
                    break
                depth -= 1
        tokens.append(token)
        at = match.end()
    tokens.append(Token("end", "", (at, at)))
    return tokens


def unescape(text: str) -> str:
    r"""Resolve backslash escapes: quotes, the backslash, `\n` and `\t`; any other backslash stays."""
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), text)


def _token(found: re.Match[str], notices: list[Notice]) -> Token:
    kind = found.lastgroup
    spelling, span = found[0], found.span()
    if found["reference"] is not None:
        if not _CANONICAL.fullmatch(spelling):
            notices.append(Notice(f"{spelling} is read as output_of_query{found['label']}", span))
        return Token("reference", found["label"], span)
    if kind == "date" or kind == "word":
        return Token("word", spelling, span)
    if kind == "thousands":
        notices.append(Notice(f"{spelling} is read as one number", span))
        return Token("number", spelling.replace(",", ""), span)
    if kind == "number":
        return Token("number", spelling, span)
    if kind == "operator":
        op = OPERATORS.get(spelling)
        if op is None:
            raise ParseError(f"unknown operator {spelling!r}", span=span, hint="the operators are = != < > <= >=")
        if spelling not in PLAIN_OPERATORS:
            notices.append(Notice(f"the operator {spelling!r} is read as {op!r}", span))
        return Token("operator", op, span)
    return Token("symbol", "-" if spelling == "−" else spelling, span)


def _closing(text: str, start: int, stop: int, quotes: str, hopeless: dict[tuple[str, bool], int]) -> int | None:
    """Return the position of the quote that closes a text which begins at `start`, or None.

    `hopeless` records from where on a search for each kind of quote fails, so that it is not repeated.
    """
    for strict, patterns in ((True, _CLOSING), (False, _LIKELY_END)):
        if start >= hopeless.get((quotes, strict), stop + 1):
            continue
        match = patterns[quotes].search(text, start, stop)
        if match is not None:
            return match.start()
        hopeless[quotes, strict] = start
    return None


def _is_stray(text: str, at: int, stop: int) -> bool:
    return _STRAY.match(text, at + 1, stop) is not None
