"""KoPL programs as they are written: the text form, the data set's JSON form, and the serialisation of its baselines.

All three give a list of `Step`s in post-fix order, each with the steps it depends on. `FUNCTIONS` is the table of the 27 functions
(KQA Pro, Table 6): how many results each takes, and which texts.

A text is first read plainly: one regular expression over calls whose arguments split without a doubt. Where there is a doubt, or
anything wrong, the careful reading decides and complains. Only the careful one knows where things stand; `places` asks it when a
message needs a position, so that programs that are right do not pay for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

from condgraph.engine.errors import ParseError, UnknownNameError, nearest

Span = tuple[int, int]
#: Longest program that is read; real ones have at most a few dozen steps.
MOST_STEPS: Final = 2_000

OPERATORS: Final = ("=", "!=", "<", ">", "<=", ">=")
DIRECTIONS: Final = ("forward", "backward")
#: What may stand in a text argument whose vocabulary is closed.
CLOSED: Final[Mapping[str, tuple[str, ...]]] = {
    "op": OPERATORS,
    "direction": DIRECTIONS,
    "between": ("greater", "less"),
    "among": ("largest", "smallest"),
}


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes: results of this many earlier steps, and texts of these roles."""

    inputs: int
    texts: tuple[str, ...]


_FILTER: Final = ("key", "value", "op")
_QFILTER: Final = ("qkey", "qvalue", "op")
FUNCTIONS: Final[Mapping[str, Signature]] = {
    "FindAll": Signature(0, ()),
    "Find": Signature(0, ("name",)),
    "FilterConcept": Signature(1, ("concept",)),
    "FilterStr": Signature(1, ("key", "value")),
    "FilterNum": Signature(1, _FILTER),
    "FilterYear": Signature(1, _FILTER),
    "FilterDate": Signature(1, _FILTER),
    "QFilterStr": Signature(1, ("qkey", "qvalue")),
    "QFilterNum": Signature(1, _QFILTER),
    "QFilterYear": Signature(1, _QFILTER),
    "QFilterDate": Signature(1, _QFILTER),
    "Relate": Signature(1, ("relation", "direction")),
    "And": Signature(2, ()),
    "Or": Signature(2, ()),
    "QueryName": Signature(1, ()),
    "Count": Signature(1, ()),
    "QueryAttr": Signature(1, ("key",)),
    "QueryAttrUnderCondition": Signature(1, ("key", "qkey", "qvalue")),
    "QueryRelation": Signature(2, ()),
    "SelectBetween": Signature(2, ("key", "between")),
    "SelectAmong": Signature(1, ("key", "among")),
    "QueryAttrQualifier": Signature(1, ("key", "value", "qkey")),
    "QueryRelationQualifier": Signature(2, ("relation", "qkey")),
    "VerifyStr": Signature(1, ("value",)),
    "VerifyNum": Signature(1, ("value", "op")),
    "VerifyYear": Signature(1, ("value", "op")),
    "VerifyDate": Signature(1, ("value", "op")),
}


class Step(NamedTuple):
    """One function call: its texts, and the numbers of the steps whose results it takes."""

    function: str
    texts: tuple[str, ...]
    dependencies: tuple[int, ...] = ()


class Place(NamedTuple):
    """Where a call stands in the text of a program, and where each of its texts."""

    call: Span
    texts: tuple[Span, ...]


#: Says whether a text is a known name for a role; decides where commas inside names would split differently.
Knows = Callable[[str, str], bool]
Program = str | Sequence[Mapping[str, Any]]


def parse(program: Program, knows: Knows | None = None) -> tuple[list[Step], list[str]]:
    """Read a program in any of its written forms. Returns its steps and warnings; raises `ParseError` with a position."""
    if not isinstance(program, str):
        return _from_json(program)
    text = program.strip()
    if text.startswith("[") and text.endswith("]"):
        try:
            return _from_json(json.loads(text))
        except json.JSONDecodeError as error:
            at = program.index("[") + error.pos
            raise ParseError(f"the program is not well-formed JSON: {error.msg}", span=(at, at + 1)) from None
        except RecursionError:
            raise ParseError("the program is nested too deeply") from None
    steps = _plain(text)
    return _link(*_careful(program, knows)) if steps is None else steps, []


def places(program: Program, knows: Knows | None = None) -> list[Place]:
    """Where the steps of a well-formed program stand in its text; empty for the JSON form, which has no positions."""
    if not isinstance(program, str) or program.strip().startswith("["):
        return []
    return _careful(program, knows)[1]


def signature(function: str, span: Span | None = None) -> Signature:
    """The table entry of a function; raises `UnknownNameError` with the nearest names."""
    found = FUNCTIONS.get(function)
    if found is None:
        hint = "names are case-sensitive and have no spaces" if function.strip().casefold() in _FOLDED else None
        raise UnknownNameError("KoPL function", function, candidates=nearest(function, FUNCTIONS), span=span, hint=hint)
    return found


_FOLDED: Final = {name.casefold() for name in FUNCTIONS}


# -- text form ------------------------------------------------------------------------------------------------------------

#: A call as most are written: JSON strings without escapes, or no quotes and at most one level of parentheses in its arguments.
#: It begins at the beginning of a word, so that what is no call is passed over once.
_CALL: Final = re.compile(
    r"""\b([^\W\d]\w*+)[ \t]*+\((?:\s*("[^"\\]*+"(?:\s*,\s*"[^"\\]*+")*+)\s*|((?:[^()"]++|\([^()"]*+\))*+))\)\s*"""
)
#: Of each function, how many results it takes, and how many texts.
_SHAPES: Final = {name: (function.inputs, len(function.texts)) for name, function in FUNCTIONS.items()}
_HEAD: Final = re.compile(r"\s*([^\W\d]\w*)[ \t]*\(")
_END_OF_CALL: Final = re.compile(rf"\)(?=\s*(?:$|(?:{'|'.join(FUNCTIONS)})[ \t]*\())")
_BLANK: Final = re.compile(r"\s*")
_DECODER: Final = json.JSONDecoder()


def _plain(program: str) -> list[Step] | None:
    """The linked steps of a program of plain calls only; None where the careful reading has to decide, or to complain."""
    parts = _CALL.split(program)
    if any(parts[::4]) or len(parts) > 4 * MOST_STEPS:
        return None  # something stands between the calls
    steps: list[Step] = []
    stack: list[int] = []
    taken: tuple[int, ...]
    for at, (function, quoted, text) in enumerate(zip(parts[1::4], parts[2::4], parts[3::4], strict=True)):
        shape = _SHAPES.get(function)
        if shape is None:
            return None
        inputs, arity = shape
        if quoted is not None:
            texts = tuple(quoted.split('"')[1::2])
        elif not text or text.isspace():
            texts = ()
        elif arity > 1:
            texts = tuple([piece.strip() for piece in text.split(",")])
        else:
            texts = (text.strip(),)
        if len(texts) != arity or len(stack) < inputs:
            return None
        if inputs == 1:
            taken = (stack[-1],)
            stack[-1] = at
        elif not inputs:
            taken = ()
            stack.append(at)
        else:
            last = stack.pop()
            taken = (stack[-1], last)
            stack[-1] = at
        # The constructor of a named tuple is a function of Python, this one is not.
        steps.append(tuple.__new__(Step, (function, texts, taken)))
    return steps if len(stack) == 1 else None


def _careful(program: str, knows: Knows | None) -> tuple[list[Step], list[Place]]:
    if "<func>" in program or "<arg>" in program:
        return _serialised(program)
    return _text_form(program, knows)


def _text_form(program: str, knows: Knows | None) -> tuple[list[Step], list[Place]]:
    steps: list[Step] = []
    places: list[Place] = []
    at, end = 0, len(program)
    while at < end:
        head = _HEAD.match(program, at)
        if head is None:
            at = _skip_blank(program, at)
            if at == end:
                break
            raise ParseError(
                f"a function call is expected, such as Find(LeBron James); found {program[at : at + 20]!r}", span=(at, end)
            )
        span = head.span(1)
        found = signature(head[1], span)
        at, texts, spans = _arguments(program, head.end(), found.texts, head[1], knows)
        steps.append(Step(head[1], texts))
        places.append(Place((span[0], at), spans))
        if len(steps) > MOST_STEPS:
            raise ParseError(f"the program has more than {MOST_STEPS} steps", span=span)
    return steps, places


def _skip_blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _arguments(
    program: str, start: int, roles: tuple[str, ...], function: str, knows: Knows | None
) -> tuple[int, tuple[str, ...], tuple[Span, ...]]:
    """Read the arguments from after the parenthesis; returns where the call ends, the texts and their spans."""
    if program.startswith('"', _skip_blank(program, start)):
        return _quoted(program, start, roles, function)
    close = _closing(program, start)
    if close < 0:
        raise ParseError(f"the parenthesis of {function} is not closed", span=(start - 1, len(program)))
    texts, spans = _split(program, start, close, roles, function, knows)
    return close + 1, texts, spans


def _closing(program: str, start: int) -> int:
    """The parenthesis that ends a call: followed by another call or the end, with those before it balanced if that can be."""
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
    while True:
        at = _skip_blank(program, at)
        if program.startswith('"', at):
            try:
                text, after = _DECODER.raw_decode(program, at)
            except json.JSONDecodeError as error:
                raise ParseError(f"an argument of {function} is no JSON string: {error.msg}", span=(at, error.pos)) from None
        else:
            after = min((i for i in (program.find(",", at), program.find(")", at)) if i >= 0), default=len(program))
            text = program[at:after].strip()
        texts.append(text)
        spans.append((at, after))
        at = _skip_blank(program, after)
        if program.startswith(")", at):
            _check_arity(function, roles, texts, (start, at))
            return at + 1, tuple(texts), tuple(spans)
        if not program.startswith(",", at):
            raise ParseError(f"a comma or a parenthesis is expected in {function}", span=(at, at + 1))
        at += 1


def _check_arity(function: str, roles: tuple[str, ...], texts: Sequence[str], span: Span | None) -> None:
    if len(texts) != len(roles):
        takes = ", ".join(roles) or "no arguments"
        raise ParseError(f"{function} takes {len(roles)} arguments ({takes}) and has {len(texts)}", span=span)


def _split(
    program: str, start: int, close: int, roles: tuple[str, ...], function: str, knows: Knows | None
) -> tuple[tuple[str, ...], tuple[Span, ...]]:
    """Split at commas, at most as often as the function has arguments: closed vocabularies from the right, names from the left."""
    if not roles:
        if program[start:close].strip():
            raise ParseError(f"{function} takes no arguments", span=(start, close))
        return (), ()
    commas = [i for i in range(start, close) if program[i] == ","] if len(roles) > 1 else []
    if len(commas) < len(roles) - 1:
        pieces = [] if not program[start:close].strip() else [""] * (len(commas) + 1)
        _check_arity(function, roles, pieces, (start, close))
    cuts = _cuts(program, start, close, commas, roles, knows)
    edges = [start - 1, *cuts, close]
    texts: list[str] = []
    spans: list[Span] = []
    for left, right in pairwise(edges):
        piece = program[left + 1 : right]
        text = piece.strip()
        low = left + 1 + len(piece) - len(piece.lstrip())
        texts.append(text)
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
        ways = [[cut] for cut in free] if wanted == 1 else [[a, b] for i, a in enumerate(free) for b in free[i + 1 :]]
        choices.extend(ways[:200])
        for cuts in choices:
            edges = [start - 1, *cuts, *last, close]
            pieces = [program[a + 1 : b].strip() for a, b in pairwise(edges)]
            if all(knows(role, piece) for role, piece in zip(roles, pieces, strict=True)):
                return cuts + last
    return choices[0] + last


# -- the other forms ------------------------------------------------------------------------------------------------------


def _serialised(program: str) -> tuple[list[Step], list[Place]]:
    steps: list[Step] = []
    places: list[Place] = []
    at = 0
    for call in program.split("<func>"):
        name, *texts = call.split("<arg>")
        start = at + len(name) - len(name.lstrip())
        span = (start, start + len(name.strip()))
        found = signature(name.strip(), span)
        pieces = [text.strip() for text in texts]
        _check_arity(name.strip(), found.texts, pieces, (at, at + len(call)))
        spans: list[Span] = []
        place = at + len(name) + len("<arg>")
        for text in texts:
            low = place + len(text) - len(text.lstrip())
            spans.append((low, low + len(text.strip())))
            place += len(text) + len("<arg>")
        steps.append(Step(name.strip(), tuple(pieces)))
        places.append(Place(span, tuple(spans)))
        if len(steps) > MOST_STEPS:
            raise ParseError(f"the program has more than {MOST_STEPS} steps", span=span)
        at += len(call) + len("<func>")
    return steps, places


def _from_json(program: Any) -> tuple[list[Step], list[str]]:
    if not isinstance(program, Sequence) or isinstance(program, (str, bytes)) or not program:
        raise ParseError("a KoPL program in JSON is a list of steps", hint='a step is {"function": ..., "inputs": [...]}')
    if len(program) > MOST_STEPS:
        raise ParseError(f"the program has more than {MOST_STEPS} steps")
    steps: list[Step] = []
    given: list[tuple[int, ...] | None] = []
    for i, record in enumerate(program):
        # What JSON gives is looked at by exact type first: the abstract types cost ten times as much.
        if not (type(record) is dict or isinstance(record, Mapping)) or not isinstance(record.get("function"), str):
            raise ParseError(f"step {i} has no function", hint='a step is {"function": ..., "inputs": [...]}')
        function = record["function"]
        found = FUNCTIONS.get(function) or signature(function)
        texts = record.get("inputs", ())
        if not _is_list(texts, str):
            raise ParseError(f"step {i}, {function}: inputs are a list of texts")
        if len(texts) != len(found.texts):
            _check_arity(f"step {i}, {function},", found.texts, texts, None)
        dependencies = record.get("dependencies")
        if dependencies is not None and not _is_list(dependencies, int):
            raise ParseError(f"step {i}, {function}: dependencies are a list of step numbers")
        given.append(None if dependencies is None or (found.inputs and not dependencies) else tuple(dependencies))
        steps.append(Step(function, tuple(texts)))
    if all(dependencies is None for dependencies in given):
        return _link(steps), []
    try:
        inferred = _link(steps)
    except ParseError:
        if any(dependencies is None for dependencies in given):
            raise
        inferred = steps
    if [step.dependencies for step in inferred] == given:
        return inferred, []
    linked: list[Step] = []
    warnings: list[str] = []
    for i, (step, wanted) in enumerate(zip(inferred, given, strict=True)):
        if wanted is None or wanted == step.dependencies:
            linked.append(step)
            continue
        needs = FUNCTIONS[step.function].inputs
        if len(wanted) != needs or not all(0 <= d < i for d in wanted):
            raise ParseError(f"step {i}, {step.function}: takes the results of {needs} earlier steps, and names {list(wanted)}")
        warnings.append(f"step {i}, {step.function}: its dependencies {list(wanted)} are not those of the order; they are followed")
        linked.append(Step(step.function, step.texts, wanted))
    used = {d for step in linked for d in step.dependencies}
    for i in range(len(linked) - 1):
        if i not in used:
            raise ParseError(f"the result of step {i}, {linked[i].function}, is not used")
    return linked, warnings


def _is_list(found: Any, kind: type) -> bool:
    if type(found) is not list and (not isinstance(found, Sequence) or isinstance(found, str)):
        return False
    # A truth value is no step number.
    return all(type(one) is kind or (isinstance(one, kind) and not isinstance(one, bool)) for one in found)


def _link(steps: list[Step], places: Sequence[Place] = ()) -> list[Step]:
    """Post-fix: each function takes the latest results that nobody took yet."""
    if not steps:
        raise ParseError("the program is empty", hint="such as: Find(LeBron James) Relate(drafted by, forward) QueryName()")
    linked: list[Step] = []
    stack: list[int] = []
    for i, step in enumerate(steps):
        needs = FUNCTIONS[step.function].inputs
        if len(stack) < needs:
            raise ParseError(
                f"{step.function} takes the results of {needs} earlier steps, and {len(stack)} are left",
                span=places[i].call if places else None,
            )
        taken = tuple(stack[len(stack) - needs :])
        del stack[len(stack) - needs :]
        stack.append(i)
        linked.append(Step(step.function, step.texts, taken))
    if len(stack) > 1:
        raise ParseError(
            f"the result of {steps[stack[0]].function} is not used: {len(stack)} results are left at the end",
            span=places[stack[0]].call if places else None,
            hint="And() or Or() joins two sets",
        )
    return linked
