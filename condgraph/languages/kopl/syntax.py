"""The syntax of KoPL: programs as text, in nested form, and as the data set's JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from condgraph.engine.errors import ParseError
from condgraph.languages.kopl.careful import check_arity, read_with_care
from condgraph.languages.kopl.table import FUNCTIONS, MOST_STEPS, SHAPES, CallSpan, Knows, Linked, Program, Step, link, signature

# -- json form ---------------------------------------------------------------------------------------
# KoPL programs as JSON: the data set's lists of steps, with the numbers of the steps that each
# depends on.


def _plain(program: Sequence[Any]) -> list[Step] | None:
    """The steps of a program as JSON gives it and the data set has it, linked in post-fix order;
    None where that takes a look.
    """
    steps: list[Step] = []
    stack: list[int] = []
    new, shapes = tuple.__new__, SHAPES
    for at, record in enumerate(program):
        if type(record) is not dict:
            return None
        function, texts, given = record.get("function"), record.get("inputs"), record.get("dependencies")
        if type(function) is not str or type(texts) is not list or type(given) is not list or function not in shapes:
            return None
        inputs, arity = shapes[function]
        if len(texts) != arity or len(given) != inputs or len(stack) < inputs:
            return None
        for text in texts:
            if type(text) is not str:
                return None
        if inputs:
            taken = stack[-inputs:]
            if given != taken or True in map(_is_truth, given):
                return None
            del stack[-inputs:]
        stack.append(at)
        steps.append(new(Step, (function, tuple(texts), tuple(given))))
    return steps if len(stack) == 1 else None


def _is_truth(number: Any) -> bool:
    # A truth value is no step number, and equals one.
    return type(number) is not int


def from_json(program: Any) -> tuple[list[Step], list[str]]:
    """The linked steps of a program, and warnings; raises `ParseError`."""
    if not isinstance(program, Sequence) or isinstance(program, (str, bytes)) or not program:
        raise ParseError("a KoPL program in JSON is a list of steps", hint='a step is {"function": ..., "inputs": [...]}')
    if len(program) > MOST_STEPS:
        raise ParseError(f"the program has more than {MOST_STEPS} steps")
    if type(program) is list and (plain := _plain(program)) is not None:
        return plain, []
    steps: list[Step] = []
    given: list[tuple[int, ...] | None] = []
    for i, record in enumerate(program):
        # What JSON gives is looked at by exact type first: the abstract types cost ten times as
        # much.
        if not (type(record) is dict or isinstance(record, Mapping)) or not isinstance(record.get("function"), str):
            raise ParseError(f"step {i} has no function", hint='a step is {"function": ..., "inputs": [...]}')
        function = record["function"]
        found = FUNCTIONS.get(function) or signature(function)
        texts = record.get("inputs", ())
        if not _is_list(texts, str):
            raise ParseError(f"step {i}, {function}: inputs are a list of texts")
        if len(texts) != len(found.texts):
            check_arity(function, found.texts, texts, None, f"step {i}, {function},")
        dependencies = record.get("dependencies")
        if dependencies is not None and not _is_list(dependencies, int):
            raise ParseError(f"step {i}, {function}: dependencies are a list of step numbers")
        given.append(None if dependencies is None or (found.inputs and not dependencies) else tuple(dependencies))
        steps.append(Step(function, tuple(texts)))
    if all(dependencies is None for dependencies in given):
        return link(steps), []
    try:
        inferred = link(steps)
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


# -- syntax ------------------------------------------------------------------------------------------
# All three give a list of `Step`s in post-fix order, each with the steps it depends on. A text is
# first read plainly: calls whose arguments are all JSON strings by splitting at the quotes, others by
# one regular expression over calls whose arguments split without a doubt. Where there is a doubt, or
# anything wrong, the careful reading (`careful`) decides and complains. Only the careful one knows
# where things stand; `places` asks it when a message needs a position, so that programs that are
# right do not pay for it.


def parse(program: Program, knows: Knows | None = None) -> tuple[list[Step], list[str]]:
    """Read a program in any of its written forms. Returns its steps and warnings; raises
    `ParseError` with a position.
    """
    if not isinstance(program, str):
        # Lowering keeps the warnings as its own.
        return (program.steps, list(program.warnings)) if isinstance(program, Linked) else from_json(program)
    text = program.strip()
    if text.startswith("[") and text.endswith("]"):
        try:
            return from_json(json.loads(text))
        except json.JSONDecodeError as error:
            at = program.index("[") + error.pos
            raise ParseError(f"the program is not well-formed JSON: {error.msg}", span=(at, at + 1)) from None
        except RecursionError:
            raise ParseError("the program is nested too deeply") from None
        except ValueError:
            raise ParseError("the program holds a number of more digits than any number has") from None
    steps = read_plainly(text)
    return link(*read_with_care(program, knows)) if steps is None else steps, []


def places(program: Program, knows: Knows | None = None) -> list[CallSpan]:
    """Where the steps of a well-formed program stand in its text; empty for the JSON form, which
    has no positions.
    """
    if not isinstance(program, str) or program.strip().startswith("["):
        return []
    return read_with_care(program, knows)[1]


#: A call: its function, and the texts it is given.
_Call = tuple[str, tuple[str, ...]]


def read_plainly(program: str) -> list[Step] | None:
    """The linked steps of a program of plain calls only; None where the careful reading has to
    decide, or to complain.
    """
    calls = _quoted_calls(program) if '"' in program else None
    if calls is None:
        calls = _plain_calls(program)
        if calls is None:
            return None
    if len(calls) > MOST_STEPS:
        return None
    steps: list[Step] = []
    stack: list[int] = []
    taken: tuple[int, ...]
    shapes, new = SHAPES, tuple.__new__
    for at, (function, texts) in enumerate(calls):
        shape = shapes.get(function)
        if shape is None:
            return None
        inputs, arity = shape
        if len(texts) != arity:
            return None
        if inputs == 1:
            if not stack:
                return None
            taken = (stack[-1],)
            stack[-1] = at
        elif not inputs:
            taken = ()
            stack.append(at)
        else:
            if len(stack) < 2:
                return None
            last = stack.pop()
            taken = (stack[-1], last)
            stack[-1] = at
        # The constructor of a named tuple is a function of Python, this one is not.
        steps.append(new(Step, (function, texts, taken)))
    return steps if len(stack) == 1 else None


# -- calls with JSON strings -----------------------------------------------------------------------

_NOTHING: Final = r"\b([^\W\d]\w*)[ \t]*\(\s*\)\s*"
#: What stands between two strings: the end of a call, calls that take no texts, and the beginning
#: of the next one.
_BETWEEN: Final = re.compile(rf"(\s*\)\s*)?((?:{_NOTHING})*)(?:\b([^\W\d]\w*)[ \t]*\(\s*)?")
#: JSON strings hold no control characters.
_CONTROL: Final = re.compile(r"[\x00-\x1f]").search
#: Whether a call ends there, the calls that take no texts, and the function that begins ("" for
#: none); None for a comma.
_Between = tuple[bool, tuple[_Call, ...], str]
#: Such parts as they were met: there are few ways of writing them.
_KNOWN: Final[dict[str, _Between | None]] = {", ": None, ",": None}


def _quoted_calls(program: str) -> list[_Call] | None:
    """The calls of a program whose texts are all JSON strings without escapes; None for others."""
    if "\\" in program:
        return None
    pieces = program.split('"')
    quoted = pieces[1::2]
    if not program.isprintable() and any(map(_CONTROL, quoted)):
        return None
    quoted.append("")
    calls: list[_Call] = []
    function: str | None = None
    texts: list[str] = []
    known = _KNOWN
    for piece, text in zip(pieces[::2], quoted, strict=False):
        try:
            between = known[piece]
        except KeyError:
            if not _learn(piece):
                return None
            between = known[piece]
        if between is None:
            if not function:
                return None
            texts.append(text)
            continue
        ends, others, begins = between
        if function:
            if not ends:
                return None
            calls.append((function, tuple(texts)))
        elif ends or function is not None:
            return None
        if others:
            calls += others
        function = begins
        texts = [text]
    return None if function or not len(pieces) % 2 else calls


def _learn(piece: str) -> bool:
    """Read what stands between two strings; False where it is not what stands between plain calls."""
    if len(_KNOWN) > 4096:
        _KNOWN.clear()
    if len(piece) > 1000:
        return False
    if piece.strip() == ",":
        _KNOWN[piece] = None
        return True
    found = _BETWEEN.fullmatch(piece)
    if found is None:
        return False
    others = tuple((function, ()) for function in re.findall(_NOTHING, found[2]))
    if not all(function in SHAPES for function in (*(one for one, _ in others), found[4] or "Count")):
        return False
    _KNOWN[piece] = found[1] is not None, others, found[4] or ""
    return True


# -- calls without quotes --------------------------------------------------------------------------

#: A call as most are written: JSON strings without escapes, or no quotes and at most one level of
#: parentheses in its arguments. It begins at the beginning of a word, so that what is no call is
#: passed over once.
_CALL: Final = re.compile(
    r"""\b([^\W\d]\w*+)[ \t]*+\("""
    r"""(?:\s*("[^"\\\x00-\x1f]*+"(?:\s*,\s*"[^"\\\x00-\x1f]*+")*+)\s*|((?:[^()"]++|\([^()"]*+\))*+))\)\s*"""
)


def _plain_calls(program: str) -> list[_Call] | None:
    """The calls of a program, of which some may have texts without quotes; None where anything
    stands between them.
    """
    parts = _CALL.split(program)
    if any(parts[::4]):
        return None
    calls: list[_Call] = []
    for function, quoted, text in zip(parts[1::4], parts[2::4], parts[3::4], strict=True):
        if quoted is not None:
            texts = tuple(quoted.split('"')[1::2])
        elif not text or text.isspace():
            texts = ()
        elif SHAPES.get(function, (0, 0))[1] > 1:
            texts = tuple([piece.strip() for piece in text.split(",")])
        else:
            texts = (text.strip(),)
        calls.append((function, texts))
    return calls
