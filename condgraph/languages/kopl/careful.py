"""KoPL text read with care: where commas split, where a call ends, and where everything stands.

This reader decides where there is a doubt, and complains with a position; it takes ten times as
long as the plain reading of `syntax`, which is tried first.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import combinations, islice, pairwise
from typing import Final

from condgraph.engine.bounds import check
from condgraph.engine.errors import ParseError
from condgraph.languages.kopl.table import CLOSED, FUNCTIONS, MOST_STEPS, OPERATORS, CallSpan, Knows, Span, Step, form, signature

_HEAD: Final = re.compile(r"\s*([^\W\d]\w*)[ \t]*\(")
_END_OF_CALL: Final = re.compile(rf"\)(?=\s*(?:$|(?:{'|'.join(FUNCTIONS)})[ \t]*\())")
#: What ends a call that was not open, and begins another one.
_ANOTHER: Final = re.compile(r"\)\s*([^\W\d]\w*)\(")
#: Marks that other languages have between calls: behind a parenthesis, before a call or the end.
_PARTED: Final = re.compile(r"\)\s{0,9}(\.|->|→|,|;|\|>?|>>)\s{0,9}(?=[A-Z]\w{0,99}\s{0,9}\(|$)")
_BLANK: Final = re.compile(r"\s*")
_DECODER: Final = json.JSONDecoder()
#: Ways of splitting at commas that are tried.
_MOST_WAYS: Final = 200
#: Characters that are looked through for marks between calls.
_LOOKED_THROUGH: Final = 10_000


def read_with_care(program: str, knows: Knows | None) -> tuple[list[Step], list[CallSpan]]:
    """The steps of a program as text or in the serialisation of the data set's baselines, not yet
    linked, and where they stand.
    """
    # A call in parentheses is none of the serialisation, whatever marks its texts have.
    if ("<func>" in program or "<arg>" in program) and not _HEAD.match(program):
        return _serialised(program)
    return _text_form(program, knows)


def _text_form(program: str, knows: Knows | None) -> tuple[list[Step], list[CallSpan]]:
    steps: list[Step] = []
    places: list[CallSpan] = []
    at, end = 0, len(program)
    while at < end:
        check()
        head = _HEAD.match(program, at)
        if head is None:
            at = _skip_blank(program, at)
            if at == end:
                break
            raise ParseError(
                f"a function call is expected, such as Find(LeBron James); found {program[at : at + 20]!r}",
                span=(at, end),
                hint=parted(f"){program[at:]}") if steps else None,
            )
        span = head.span(1)
        found = signature(head[1], span)
        at, texts, spans = _arguments(program, head.end(), found.texts, head[1], knows)
        steps.append(Step(head[1], texts))
        places.append(CallSpan((span[0], at), spans))
        if len(steps) > MOST_STEPS:
            raise ParseError(f"the program has more than {MOST_STEPS} steps", span=span)
    return steps, places


_NESTED: Final = "calls stand one behind the other, and none within another: Find(Nepal) QueryName()"


def parted(text: str) -> str | None:
    """What to say of a text whose calls have a mark between them."""
    found = _PARTED.search(text, 0, _LOOKED_THROUGH)
    return None if found is None else f"steps have no {found[1]!r} between them: Find(Nepal) QueryName()"


def _skip_blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _arguments(
    program: str, start: int, roles: tuple[str, ...], function: str, knows: Knows | None
) -> tuple[int, tuple[str, ...], tuple[Span, ...]]:
    """Read the arguments from after the parenthesis; returns where the call ends, the texts and
    their spans.
    """
    if program.startswith('"', _skip_blank(program, start)):
        return _quoted(program, start, roles, function)
    close = _closing(program, start)
    strings: dict[int, tuple[int, str]] = {}
    if len(roles) > 1:
        # A string may hold what looks like the end of the call.
        while close >= 0 and (strings := _strings(program, start, close)) and (last := max(strings.values())[0]) > close:
            close = _closing(program, last)
    if close < 0:
        hint = parted(program[start:])
        raise ParseError(f"the parenthesis of {function} is not closed", span=(start - 1, len(program)), hint=hint)
    _complain_of_another(program, start, close, strings)
    texts, spans = _split(program, start, close, roles, function, knows, strings)
    return close + 1, texts, spans


def _complain_of_another(program: str, start: int, close: int, strings: Mapping[int, tuple[int, str]]) -> None:
    """Complain where arguments hold a call of a function that there is none of: a parenthesis that
    ends what they did not begin, a word, and a parenthesis. In strings it is text.
    """
    begins = sorted(strings)
    depth, scanned = 0, start
    for found in _ANOTHER.finditer(program, start, close):
        at = found.start()
        depth += program.count("(", scanned, at) - program.count(")", scanned, at)
        scanned = at
        before = bisect_right(begins, at)
        quoted = before > 0 and strings[begins[before - 1]][0] > at
        if depth <= 0 and not quoted:
            signature(found[1], found.span(1), "where it is part of a name, put the name in double quotes")


def _strings(program: str, start: int, close: int) -> dict[int, tuple[int, str]]:
    """The later arguments that are JSON strings as a whole: where each begins, where it ends, and
    its text.
    """
    found: dict[int, tuple[int, str]] = {}
    at = start
    while (at := program.find(",", at, close)) >= 0:
        at = _skip_blank(program, at + 1)
        if program.startswith('"', at):
            try:
                text, end = _DECODER.raw_decode(program, at)
            except json.JSONDecodeError:
                continue
            if program.startswith((",", ")"), _skip_blank(program, end)):
                found[at] = end, text
                at = end
    return found


def _closing(program: str, start: int) -> int:
    """The parenthesis that ends a call: followed by another call or the end, with those before it
    balanced if that can be.
    """
    first = -1
    depth, scanned = 0, start
    for found in _END_OF_CALL.finditer(program, start):
        at = found.start()
        if first < 0:
            first = at
        depth += program.count("(", scanned, at) - program.count(")", scanned, at)
        if depth == 0:
            return at
        depth -= 1
        scanned = at + 1
        if at - start > 10_000:
            break
    return first


def _quoted(program: str, start: int, roles: tuple[str, ...], function: str) -> tuple[int, tuple[str, ...], tuple[Span, ...]]:
    """Arguments written as JSON strings, or plain up to the next comma."""
    texts: list[str] = []
    spans: list[Span] = []
    at = start
    # Where the next comma and parenthesis stand, looked for again only behind them.
    marks = {",": -1, ")": -1}
    while True:
        at = _skip_blank(program, at)
        if program.startswith('"', at):
            try:
                text, after = _DECODER.raw_decode(program, at)
            except json.JSONDecodeError as error:
                raise ParseError(f"an argument of {function} is no JSON string: {error.msg}", span=(at, error.pos)) from None
        else:
            for mark, place in marks.items():
                if place < at:
                    found = program.find(mark, at)
                    marks[mark] = len(program) if found < 0 else found
            after = min(marks.values())
            text = program[at:after].strip()
        texts.append(text)
        spans.append((at, after))
        at = _skip_blank(program, after)
        if program.startswith(")", at):
            check_arity(function, roles, texts, (start, at))
            return at + 1, tuple(texts), tuple(spans)
        if not program.startswith(",", at):
            raise ParseError(f"a comma or a parenthesis is expected in {function}", span=(at, at + 1))
        at += 1


def check_arity(function: str, roles: tuple[str, ...], texts: Sequence[str], span: Span | None, where: str = "") -> None:
    """Complain where a function has more or fewer texts than it takes. `where` is the step it is, if
    nothing says where it stands.
    """
    if len(texts) != len(roles):
        takes = ", ".join(roles) or "none"
        many = f"{len(roles)} argument{'' if len(roles) == 1 else 's'}"
        raise ParseError(
            f"{where or function} takes {many} ({takes}) and has {len(texts)}", span=span, hint=f"write {form(function)}"
        )


def _split(
    program: str,
    start: int,
    close: int,
    roles: tuple[str, ...],
    function: str,
    knows: Knows | None,
    strings: Mapping[int, tuple[int, str]],
) -> tuple[tuple[str, ...], tuple[Span, ...]]:
    """Split at commas outside of strings, at most as often as the function has arguments: closed
    vocabularies from the right, names from the left.
    """
    if not roles:
        if program[start:close].strip():
            hint = parted(program[start : close + 1]) or (_NESTED if "(" in program[start:close] else None)
            raise ParseError(f"{function} takes no arguments", span=(start, close), hint=hint)
        return (), ()
    if not program[start:close].strip():
        check_arity(function, roles, (), (start, close))
    inside = [(begin, end) for begin, (end, _) in strings.items()]
    commas = [i for i in range(start, close) if program[i] == ","] if len(roles) > 1 else []
    if inside:
        # Both are in order, and strings do not overlap.
        ends = [end for _, end in inside]
        commas = [i for i in commas if not ((at := bisect_right(ends, i)) < len(inside) and inside[at][0] < i)]
    if len(commas) < len(roles) - 1:
        check_arity(function, roles, [""] * (len(commas) + 1), (start, close))
    if len(commas) >= len(roles) and roles[-1] not in CLOSED and program[commas[-1] + 1 : close].strip() in OPERATORS:
        # An operator where the function has none would become a part of the text before it.
        check_arity(function, roles, [""] * (len(roles) + 1), (start, close))
    cuts = _cuts(program, start, close, commas, roles, knows)
    edges = [start - 1, *cuts, close]
    texts: list[str] = []
    spans: list[Span] = []
    for left, right in pairwise(edges):
        piece = program[left + 1 : right]
        text = piece.strip()
        low = left + 1 + len(piece) - len(piece.lstrip())
        end, string = strings.get(low, (-1, ""))
        texts.append(string if end == low + len(text) else text)
        spans.append((low, low + len(text)))
    return tuple(texts), tuple(spans)


def _cuts(program: str, start: int, close: int, commas: list[int], roles: tuple[str, ...], knows: Knows | None) -> list[int]:
    needed = len(roles) - 1
    if len(commas) == needed:
        return commas
    closed = 1 if roles[-1] in CLOSED else 0
    last = commas[len(commas) - closed :] if closed else []
    free = commas[: len(commas) - closed]
    wanted = needed - closed
    if not wanted:
        return last
    choices = [free[:wanted]]
    if knows is not None:
        # More commas than arguments: the cut whose names are known is the one that was meant.
        choices.extend(map(list, islice(combinations(free, wanted), _MOST_WAYS)))
        for cuts in choices:
            edges = [start - 1, *cuts, *last, close]
            pieces = [program[a + 1 : b].strip() for a, b in pairwise(edges)]
            if all(knows(role, piece) for role, piece in zip(roles, pieces, strict=True)):
                return cuts + last
    return choices[0] + last


def _serialised(program: str) -> tuple[list[Step], list[CallSpan]]:
    steps: list[Step] = []
    places: list[CallSpan] = []
    at = 0
    for call in program.split("<func>"):
        name, *texts = call.split("<arg>")
        start = at + len(name) - len(name.lstrip())
        span = (start, start + len(name.strip()))
        found = signature(name.strip(), span)
        pieces = [text.strip() for text in texts]
        check_arity(name.strip(), found.texts, pieces, (at, at + len(call)))
        spans: list[Span] = []
        place = at + len(name) + len("<arg>")
        for text in texts:
            low = place + len(text) - len(text.lstrip())
            spans.append((low, low + len(text.strip())))
            place += len(text) + len("<arg>")
        steps.append(Step(name.strip(), tuple(pieces)))
        places.append(CallSpan(span, tuple(spans)))
        if len(steps) > MOST_STEPS:
            raise ParseError(f"the program has more than {MOST_STEPS} steps", span=span)
        at += len(call) + len("<func>")
    return steps, places
