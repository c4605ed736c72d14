"""The text of an LLM query to its syntax tree: lines, labels, references, and which queries the
answer needs.

    ## Target type: {number of Italians}
    Step1: Find the rows whose Nation is Italy
    Query1: "get_information(relation='Nation', tail_entity='Italy')"
    Step2: Count them
    Query2: "count(set='output_of_query1')"

The answer is the last query; what it needs is followed back from there. A query that nobody needs
is not run, so its errors are notices. Lines that are neither step nor query are left out with a
notice: language models like to explain themselves. The grammar of one query is in `expression`,
what its functions mean in `languages.llm.functions`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from condgraph.engine.bounds import check
from condgraph.engine.errors import CondgraphError, InterruptedQueryError, ParseError
from condgraph.engine.pieces import watched
from condgraph.languages.llm.syntax.expression import Parser
from condgraph.languages.llm.syntax.plain import plain_call
from condgraph.languages.llm.syntax.tree import Expression, Notice, Program, Query, Span, references

_HEADER: Final = re.compile(
    r"""[ \t>*_`#-]*+ (?:
          (?P<kind>step|query)[ \t]*+(?P<label>\d+(?:_[a-z]\w*+)?)[*_]{0,2}+[ \t]*+:[*_]{0,2}+
        | target[ \t]+type[*_]{0,2}+[ \t]*+:[*_]{0,2}+[ \t]*+(?P<target>[^\n]*+)
        | quer(?:y|ies)[*_]{0,2}+[ \t]*+:[*_]{0,2}+(?P<rest>[^\n]*+)
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_LEFTOVER: Final = re.compile(r"""[\s"“”„‟″'‘’`.,;)\]}*]*""")
_LONE: Final = re.compile(r"""[\s"“`]*[a-z_]\w*[ \t]*\(""", re.IGNORECASE)
_FENCE: Final = re.compile(r"[ \t]*```\w*[ \t]*")


@dataclass(slots=True)
class _Section:
    """A step or a query with the lines up to the next one: where its text begins and ends."""

    kind: str
    label: str
    span: Span
    start: int
    stop: int


def parse(text: str) -> Program:
    """Read a program. Raises `ParseError` for what has no meaning, and `UnknownNameError` for an
    output that no earlier query gives.

    A single expression without any `Query1:` is a program as well.

    >>> program = parse('Query1: "get_information(relation=\\'Year\\', tail_entity>\\'2000\\')"')
    >>> [argument.op for argument in program.queries[0].expression.arguments]
    ['=', '>']
    """
    notices: list[Notice] = []
    sections, target_type = _sections(text, notices)
    queries: list[Query] = []
    known: dict[str, int] = {}
    step: _Section | None = None
    for section in sections:
        check()
        if section.kind == "step":
            if step is not None:
                notices.append(Notice(f"step {step.label} has no query", step.span))
            step = section
            continue
        words = "" if step is None else " ".join(text[step.start : step.stop].split())
        query, said = _query(text, section, words, known)
        notices.extend(said)
        if section.label in known:
            notices.append(Notice(f"query {section.label} is written twice; later queries mean the second one", section.span))
        known[section.label] = len(queries)
        queries.append(query)
        step = None
    if step is not None:
        notices.append(Notice(f"step {step.label} has no query", step.span))
    if not queries:
        raise ParseError(
            "there is no query in this text", span=(0, len(text)), hint='a query is a line: Query1: "get_information(...)"'
        )
    used = _used(queries)
    needed = set(used)
    for position, query in enumerate(queries):
        if query.error is not None and position not in needed:
            notices.append(Notice(f"query {query.label} is not needed and cannot be read: {query.error.message}", query.span))
    return Program(tuple(queries), used, target_type, tuple(notices))


def parse_expression(text: str) -> Expression:
    """Read one expression without references to other queries, for tests and tools."""
    parser = Parser(text, 0, len(text), {}, [])
    expression = parser.expression()
    parser.finish()
    return expression


def _sections(text: str, notices: list[Notice]) -> tuple[list[_Section], str | None]:
    """Cut the text into steps and queries; lines before the first one are notices, the target type
    is read.
    """
    sections: list[_Section] = []
    target_type: str | None = None
    if text.strip() and not any(_HEADER.match(line) for line in watched(text.splitlines())):
        if _LONE.match(text):
            begin = len(text) - len(text.lstrip())
            return [_Section("query", "1", (begin, len(text)), begin, len(text))], None
        _prose(text, 0, len(text), notices)
        return [], None
    at = 0
    open_section: _Section | None = None
    prose = 0
    for line in watched(text.splitlines(keepends=True)):
        found = _HEADER.match(line)
        if found is not None:
            if open_section is not None:
                open_section.stop = at
            else:
                _prose(text, prose, at, notices)
            open_section = None
            if found["kind"] is not None:
                label = found["label"].casefold()
                open_section = _Section(found["kind"].casefold(), label, (at, at + len(line.rstrip())), at + found.end(), len(text))
                sections.append(open_section)
            elif found["target"] is not None:
                if target_type is not None:
                    notices.append(Notice("the target type is given twice; the last one counts", (at, at + len(line.rstrip()))))
                target_type = _target(found["target"])
            elif found["rest"].strip(" \t`*\r"):
                notices.append(Notice("a line that is no step and no numbered query is left out", (at, at + len(line.rstrip()))))
            prose = at + len(line)
        at += len(line)
    if open_section is None:
        _prose(text, prose, at, notices)
    return sections, target_type


def _prose(text: str, start: int, stop: int, notices: list[Notice]) -> None:
    """Lines that say nothing to the engine: a notice each, but for blank ones and code fences."""
    at = start
    for line in watched(text[start:stop].splitlines(keepends=True)):
        if line.strip() and not _FENCE.fullmatch(line.rstrip("\r\n")):
            begin = at + len(line) - len(line.lstrip())
            notices.append(Notice("a line that is no step and no query is left out", (begin, at + len(line.rstrip()))))
        at += len(line)


def _target(text: str) -> str | None:
    return text.strip().strip("{}'\"‘’“”`* ").strip() or None


def _query(text: str, section: _Section, step: str, known: dict[str, int]) -> tuple[Query, list[Notice]]:
    """Read one query; an error is kept in it, because only the queries that the answer needs have
    to be right.
    """
    plain = plain_call(text, section.start, section.stop, known)
    if plain is not None:
        return Query(section.label, plain, step, None, section.span), []
    notices: list[Notice] = []
    try:
        parser = Parser(text, section.start, section.stop, known, notices)
        expression = parser.expression()
        parser.finish()
        _leftover(text, parser.end, section.stop, notices)
    except InterruptedQueryError:
        raise
    except CondgraphError as error:
        return Query(section.label, None, step, error, section.span), []
    return Query(section.label, expression, step, None, section.span), notices


def _leftover(text: str, start: int, stop: int, notices: list[Notice]) -> None:
    """What follows an expression: closing marks on its own line, and lines of prose."""
    line_end = text.find("\n", start, stop)
    line_end = stop if line_end < 0 else line_end
    found = _LEFTOVER.match(text, start, line_end)
    end = start if found is None else found.end()
    if end < line_end:
        hint = "one query a line" if text[start : start + 1] in ("'", '"', "”", "’") else "texts stand between quotes"
        raise ParseError(
            f"{text[end : min(end + 30, line_end)]!r} follows the end of the expression", span=(end, line_end), hint=hint
        )
    if any(mark in text[start:end] for mark in ")]}"):
        notices.append(Notice("a closing parenthesis too many", (start, end)))
    _prose(text, line_end, stop, notices)


def _used(queries: list[Query]) -> tuple[int, ...]:
    """The positions that the last query needs; raises the error of one that cannot be read."""
    waiting, used = [len(queries) - 1], set[int]()
    while waiting:
        position = waiting.pop()
        if position in used:
            continue
        query = queries[position]
        if query.expression is None:
            assert query.error is not None
            raise query.error
        used.add(position)
        waiting.extend(reference.position for reference in references(query.expression))
    return tuple(sorted(used))
