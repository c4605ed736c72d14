"""The syntax of KoPL: programs as text, in the serialisation of the baselines, and as the data set's JSON.

All forms give a list of `Step`s in post-fix order, each with the steps it depends on. A text is first parsed by a fast
reader: one regular expression over calls whose arguments split unambiguously. If anything is ambiguous or wrong, the
careful reader decides and reports the error. Only the careful reader computes positions; `places` runs it when a message
needs one, so correct programs do not pay for it.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import combinations, islice, pairwise
from typing import Any, ClassVar, Final

from condgraph.engine.bounds import check
from condgraph.engine.errors import ParseError
from condgraph.languages.kopl import table
from condgraph.languages.kopl.table import CLOSED, FUNCTIONS, Linked, Program, Step, link
from condgraph.languages.parameters import GivenText, Hole, hole, hole_or_text, in_order

# -- The careful reader ------------------------------------------------------------------------------
# It resolves ambiguity and reports errors with a position. It takes ten times as long as the fast
# reader, which is tried first.


_HEAD: Final = re.compile(r"\s*([^\W\d]\w*)[ \t]*\(")
_END_OF_CALL: Final = re.compile(rf"\)(?=\s*(?:$|(?:{'|'.join(table.FUNCTIONS)})[ \t]*\())")
#: The end of one call and the start of another one.
_ANOTHER: Final = re.compile(r"\)\s*([^\W\d]\w*)\(")
#: Separators that other languages write between calls: after a parenthesis, before a call or the end.
_PARTED: Final = re.compile(r"\)\s{0,9}(\.|->|→|,|;|\|>?|>>)\s{0,9}(?=[A-Z]\w{0,99}\s{0,9}\(|$)")
_BLANK: Final = re.compile(r"\s*")
_DECODER: Final = json.JSONDecoder()
#: How many ways of splitting at commas are tried.
_MAX_SPLITS: Final = 200
#: How many characters are searched for separators between calls.
_MAX_SEARCHED: Final = 10_000


def read_with_care(program: str, knows: table.Knows | None) -> tuple[list[table.Step], list[table.CallSpan]]:
    """Parse a program as text or in the serialisation of the data set's baselines.

    Returns the steps, not yet linked, and their positions.
    """
    # A program that begins with a call in parentheses is a text, even if a name contains "<arg>".
    if ("<func>" in program or "<arg>" in program) and not _HEAD.match(program):
        return _serialised(program)
    return _text_form(program, knows)


def _text_form(program: str, knows: table.Knows | None) -> tuple[list[table.Step], list[table.CallSpan]]:
    steps: list[table.Step] = []
    call_spans: list[table.CallSpan] = []
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
        name_span = head.span(1)
        function = table.signature(head[1], name_span)
        at, texts, text_spans = _arguments(program, head.end(), function.texts, head[1], knows)
        steps.append(table.Step(head[1], texts))
        call_spans.append(table.CallSpan((name_span[0], at), text_spans))
        if len(steps) > table.MAX_STEPS:
            raise ParseError(f"the program has more than {table.MAX_STEPS} steps", span=name_span)
    return steps, call_spans


_NESTED: Final = "calls follow one another, and are not nested: Find(Nepal) QueryName()"


def parted(text: str) -> str | None:
    """Return a hint for a text that has separators between calls, or None."""
    match = _PARTED.search(text, 0, _MAX_SEARCHED)
    return None if match is None else f"steps have no {match[1]!r} between them: Find(Nepal) QueryName()"


def _skip_blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _arguments(
    program: str, start: int, roles: tuple[str, ...], function: str, knows: table.Knows | None
) -> tuple[int, tuple[str, ...], tuple[table.Span, ...]]:
    """Parse the arguments after the parenthesis; returns the end of the call, the texts and their spans."""
    if program.startswith('"', _skip_blank(program, start)):
        return _quoted(program, start, roles, function)
    close = _closing(program, start)
    strings: dict[int, tuple[int, str]] = {}
    if len(roles) > 1:
        # A string may contain text that looks like the end of the call.
        while close >= 0 and (strings := _strings(program, start, close)) and (last := max(strings.values())[0]) > close:
            close = _closing(program, last)
    if close < 0:
        hint = parted(program[start:])
        raise ParseError(f"the parenthesis of {function} is not closed", span=(start - 1, len(program)), hint=hint)
    _complain_of_another(program, start, close, strings)
    texts, spans = _split(program, start, close, roles, function, knows, strings)
    return close + 1, texts, spans


def _complain_of_another(program: str, start: int, close: int, strings: Mapping[int, tuple[int, str]]) -> None:
    """Raise an error if the arguments contain a call of a function that does not exist.

    Such a call shows as a parenthesis that closes one that the arguments did not open, a word, and a
    parenthesis. Within strings it is plain text.
    """
    string_starts = sorted(strings)
    depth, scanned = 0, start
    for match in _ANOTHER.finditer(program, start, close):
        at = match.start()
        depth += program.count("(", scanned, at) - program.count(")", scanned, at)
        scanned = at
        before = bisect_right(string_starts, at)
        quoted = before > 0 and strings[string_starts[before - 1]][0] > at
        if depth <= 0 and not quoted:
            table.signature(match[1], match.span(1), "where it is part of a name, put the name in double quotes")


def _strings(program: str, start: int, close: int) -> dict[int, tuple[int, str]]:
    """Return the later arguments that are JSON strings: the start of each with its end and text."""
    result: dict[int, tuple[int, str]] = {}
    at = start
    while (at := program.find(",", at, close)) >= 0:
        at = _skip_blank(program, at + 1)
        if program.startswith('"', at):
            try:
                text, end = _DECODER.raw_decode(program, at)
            except json.JSONDecodeError:
                continue
            if program.startswith((",", ")"), _skip_blank(program, end)):
                result[at] = end, text
                at = end
    return result


def _closing(program: str, start: int) -> int:
    """Return the position of the parenthesis that ends a call, or -1.

    It is followed by another call or the end of the text. Those before it are balanced, if possible.
    """
    first = -1
    depth, scanned = 0, start
    for match in _END_OF_CALL.finditer(program, start):
        at = match.start()
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


def _quoted(program: str, start: int, roles: tuple[str, ...], function: str) -> tuple[int, tuple[str, ...], tuple[table.Span, ...]]:
    """Parse arguments written as JSON strings, or plainly up to the next comma."""
    texts: list[str] = []
    spans: list[table.Span] = []
    at = start
    # Positions of the next comma and parenthesis; searched again only once they are passed.
    marks = {",": -1, ")": -1}
    while True:
        at = _skip_blank(program, at)
        if program.startswith('"', at):
            try:
                text, after = _DECODER.raw_decode(program, at)
            except json.JSONDecodeError as error:
                raise ParseError(f"an argument of {function} is not a JSON string: {error.msg}", span=(at, error.pos)) from None
        else:
            for mark, mark_at in marks.items():
                if mark_at < at:
                    next_at = program.find(mark, at)
                    marks[mark] = len(program) if next_at < 0 else next_at
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


def check_arity(function: str, roles: tuple[str, ...], texts: Sequence[str], span: table.Span | None, where: str = "") -> None:
    """Raise `ParseError` if a function has the wrong number of texts; `where` names a step without a position."""
    if len(texts) != len(roles):
        takes = ", ".join(roles) or "none"
        count = f"{len(roles)} argument{'' if len(roles) == 1 else 's'}"
        raise ParseError(
            f"{where or function} takes {count} ({takes}) and has {len(texts)}", span=span, hint=f"write {table.form(function)}"
        )


def _split(
    program: str,
    start: int,
    close: int,
    roles: tuple[str, ...],
    function: str,
    knows: table.Knows | None,
    strings: Mapping[int, tuple[int, str]],
) -> tuple[tuple[str, ...], tuple[table.Span, ...]]:
    """Split arguments at the commas outside of strings, into no more pieces than the function takes.

    Arguments with a closed vocabulary are split off from the right, names from the left.
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
        # Both lists are sorted, and strings do not overlap.
        ends = [end for _, end in inside]
        commas = [i for i in commas if not ((at := bisect_right(ends, i)) < len(inside) and inside[at][0] < i)]
    if len(commas) < len(roles) - 1:
        check_arity(function, roles, [""] * (len(commas) + 1), (start, close))
    if len(commas) >= len(roles) and roles[-1] not in table.CLOSED and program[commas[-1] + 1 : close].strip() in table.OPERATORS:
        # An operator that the function does not take would become part of the text before it.
        check_arity(function, roles, [""] * (len(roles) + 1), (start, close))
    cuts = _cuts(program, start, close, commas, roles, knows)
    edges = [start - 1, *cuts, close]
    texts: list[str] = []
    spans: list[table.Span] = []
    for left, right in pairwise(edges):
        piece = program[left + 1 : right]
        text = piece.strip()
        low = left + 1 + len(piece) - len(piece.lstrip())
        end, string = strings.get(low, (-1, ""))
        texts.append(string if end == low + len(text) else text)
        spans.append((low, low + len(text)))
    return tuple(texts), tuple(spans)


def _cuts(program: str, start: int, close: int, commas: list[int], roles: tuple[str, ...], knows: table.Knows | None) -> list[int]:
    needed = len(roles) - 1
    if len(commas) == needed:
        return commas
    closed_count = 1 if roles[-1] in table.CLOSED else 0
    last = commas[len(commas) - closed_count :] if closed_count else []
    open_commas = commas[: len(commas) - closed_count]
    open_cuts = needed - closed_count
    if not open_cuts:
        return last
    choices = [open_commas[:open_cuts]]
    if knows is not None:
        # More commas than arguments: prefer the cut that gives known names.
        choices.extend(map(list, islice(combinations(open_commas, open_cuts), _MAX_SPLITS)))
        for cuts in choices:
            edges = [start - 1, *cuts, *last, close]
            pieces = [program[a + 1 : b].strip() for a, b in pairwise(edges)]
            if all(knows(role, piece) for role, piece in zip(roles, pieces, strict=True)):
                return cuts + last
    return choices[0] + last


def _serialised(program: str) -> tuple[list[table.Step], list[table.CallSpan]]:
    steps: list[table.Step] = []
    call_spans: list[table.CallSpan] = []
    at = 0
    for call in program.split("<func>"):
        name, *texts = call.split("<arg>")
        start = at + len(name) - len(name.lstrip())
        span = (start, start + len(name.strip()))
        signature = table.signature(name.strip(), span)
        pieces = [text.strip() for text in texts]
        check_arity(name.strip(), signature.texts, pieces, (at, at + len(call)))
        text_spans: list[table.Span] = []
        text_at = at + len(name) + len("<arg>")
        for text in texts:
            low = text_at + len(text) - len(text.lstrip())
            text_spans.append((low, low + len(text.strip())))
            text_at += len(text) + len("<arg>")
        steps.append(table.Step(name.strip(), tuple(pieces)))
        call_spans.append(table.CallSpan(span, tuple(text_spans)))
        if len(steps) > table.MAX_STEPS:
            raise ParseError(f"the program has more than {table.MAX_STEPS} steps", span=span)
        at += len(call) + len("<func>")
    return steps, call_spans


# -- JSON ------------------------------------------------------------------------------------------
# KoPL programs as JSON: the data set's lists of steps, each with the numbers of the steps that it
# depends on.


def _usual_steps(program: Sequence[Any]) -> list[table.Step] | None:
    """Return the linked steps of a JSON program in the data set's usual form, in post-fix order.

    Returns None if the program needs the full checks.
    """
    steps: list[table.Step] = []
    stack: list[int] = []
    new, shapes = tuple.__new__, table.SHAPES
    for at, record in enumerate(program):
        if type(record) is not dict:
            return None
        function, texts, dependencies = record.get("function"), record.get("inputs"), record.get("dependencies")
        if type(function) is not str or type(texts) is not list or type(dependencies) is not list or function not in shapes:
            return None
        inputs, arity = shapes[function]
        if len(texts) != arity or len(dependencies) != inputs or len(stack) < inputs:
            return None
        for text in texts:
            if type(text) is not str:
                return None
        if inputs:
            expected = stack[-inputs:]
            if dependencies != expected or True in map(_is_truth, dependencies):
                return None
            del stack[-inputs:]
        stack.append(at)
        steps.append(new(table.Step, (function, tuple(texts), tuple(dependencies))))
    return steps if len(stack) == 1 else None


def _is_truth(number: Any) -> bool:
    # True equals 1, but is no step number.
    return type(number) is not int


def from_json(program: Any) -> tuple[list[table.Step], list[str]]:
    """Return the linked steps of a JSON program, and warnings; raises `ParseError`."""
    if not isinstance(program, Sequence) or isinstance(program, (str, bytes)) or not program:
        raise ParseError("a KoPL program in JSON is a list of steps", hint='a step is {"function": ..., "inputs": [...]}')
    if len(program) > table.MAX_STEPS:
        raise ParseError(f"the program has more than {table.MAX_STEPS} steps")
    if type(program) is list and (plain := _usual_steps(program)) is not None:
        return plain, []
    steps: list[table.Step] = []
    declared: list[tuple[int, ...] | None] = []
    for i, record in enumerate(program):
        # Exact types first: checks against the abstract types cost ten times as much.
        if not (type(record) is dict or isinstance(record, Mapping)) or not isinstance(record.get("function"), str):
            raise ParseError(f"step {i} has no function", hint='a step is {"function": ..., "inputs": [...]}')
        function = record["function"]
        signature = table.FUNCTIONS.get(function) or table.signature(function)
        texts = record.get("inputs", ())
        if not _is_list(texts, str):
            raise ParseError(f"step {i}, {function}: inputs are a list of texts")
        if len(texts) != len(signature.texts):
            check_arity(function, signature.texts, texts, None, f"step {i}, {function},")
        dependencies = record.get("dependencies")
        if dependencies is not None and not _is_list(dependencies, int):
            raise ParseError(f"step {i}, {function}: dependencies are a list of step numbers")
        declared.append(None if dependencies is None or (signature.inputs and not dependencies) else tuple(dependencies))
        steps.append(table.Step(function, tuple(texts)))
    if all(dependencies is None for dependencies in declared):
        return table.link(steps), []
    try:
        inferred = table.link(steps)
    except ParseError:
        if any(dependencies is None for dependencies in declared):
            raise
        inferred = steps
    if [step.dependencies for step in inferred] == declared:
        return inferred, []
    linked: list[table.Step] = []
    warnings: list[str] = []
    for i, (step, expected) in enumerate(zip(inferred, declared, strict=True)):
        if expected is None or expected == step.dependencies:
            linked.append(step)
            continue
        needs = table.FUNCTIONS[step.function].inputs
        if len(expected) != needs or not all(0 <= d < i for d in expected):
            raise ParseError(f"step {i}, {step.function}: takes the results of {needs} earlier steps, and names {list(expected)}")
        warnings.append(
            f"step {i}, {step.function}: its dependencies {list(expected)} are not those of the order; they are followed"
        )
        linked.append(table.Step(step.function, step.texts, expected))
    used = {d for step in linked for d in step.dependencies}
    for i in range(len(linked) - 1):
        if i not in used:
            raise ParseError(f"the result of step {i}, {linked[i].function}, is not used")
    return linked, warnings


def _is_list(found: Any, kind: type) -> bool:
    if type(found) is not list and (not isinstance(found, Sequence) or isinstance(found, str)):
        return False
    # A bool is an int, but no step number.
    return all(type(item) is kind or (isinstance(item, kind) and not isinstance(item, bool)) for item in found)


# -- Text ------------------------------------------------------------------------------------------


def parse(program: table.Program, knows: table.Knows | None = None) -> tuple[list[table.Step], list[str]]:
    """Parse a program in any of its written forms; returns its steps and warnings.

    Raises `ParseError`, with a position for a text.
    """
    if not isinstance(program, str):
        # The list is copied because lowering adds to it.
        return (program.steps, list(program.warnings)) if isinstance(program, table.Linked) else from_json(program)
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
    return table.link(*read_with_care(program, knows)) if steps is None else steps, []


def places(program: table.Program, knows: table.Knows | None = None) -> list[table.CallSpan]:
    """Return the positions of the steps of a well-formed program; empty for JSON, which has none."""
    if not isinstance(program, str) or program.strip().startswith("["):
        return []
    return read_with_care(program, knows)[1]


#: A call: its function and texts.
_Call = tuple[str, tuple[str, ...]]


def read_plainly(program: str) -> list[table.Step] | None:
    """Parse a program of unambiguous calls and link its steps.

    Returns None where the careful reader has to decide or to report an error.
    """
    calls = _usual_calls(program)
    if calls is None or len(calls) > table.MAX_STEPS:
        return None
    steps: list[table.Step] = []
    stack: list[int] = []
    taken: tuple[int, ...]
    shapes, new = table.SHAPES, tuple.__new__
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
        # `tuple.__new__` is faster than the constructor of a named tuple, which is Python code.
        steps.append(new(table.Step, (function, texts, taken)))
    return steps if len(stack) == 1 else None


#: A call as most are written: JSON strings without escapes, or no quotes and at most one level of
#: parentheses in its arguments. It starts at a word boundary, so that other text is scanned only once.
_CALL: Final = re.compile(
    r"""\b([^\W\d]\w*+)[ \t]*+\("""
    r"""(?:\s*("[^"\\\x00-\x1f]*+"(?:\s*,\s*"[^"\\\x00-\x1f]*+")*+)\s*|((?:[^()"]++|\([^()"]*+\))*+))\)\s*"""
)


def _usual_calls(program: str) -> list[_Call] | None:
    """Return the calls of a program; None if there is anything between them."""
    parts = _CALL.split(program)
    if any(parts[::4]):
        return None
    calls: list[_Call] = []
    for function, quoted, text in zip(parts[1::4], parts[2::4], parts[3::4], strict=True):
        if quoted is not None:
            texts = tuple(quoted.split('"')[1::2])
        elif not text or text.isspace():
            texts = ()
        elif table.SHAPES.get(function, (0, 0))[1] > 1:
            texts = tuple([piece.strip() for piece in text.split(",")])
        else:
            texts = (text.strip(),)
        calls.append((function, texts))
    return calls


# -- templates ---------------------------------------------------------------------------------------
# KoPL programs with parameters: `Find($person) Relate(directed_by, backward) QueryName()`.
#
# In a text, `$person` without quotes is a parameter, and `"$person"` is the name `$person`. In JSON
# every input is quoted: `"$person"` is a parameter, and `"$$person"` the name.


#: Names of the closed roles in error messages.
_WORDS: Final = {"op": "an operator", "direction": "a direction", "between": "a choice", "among": "a choice"}


class KoplTemplate:
    """A parsed KoPL program with parameters.

    Raises as `parse`, and `ParseError` for a parameter as an operator, direction or choice, which are
    syntax.
    """

    language: ClassVar[str] = "kopl"

    def __init__(self, program: Program) -> None:
        self._steps, self._warnings = _read_steps(program)
        names: list[str] = []
        not_entities: set[str] = set()
        for at, step in enumerate(self._steps):
            for text, role in zip(step.texts, FUNCTIONS[step.function].texts, strict=True):
                if not isinstance(text, Hole):
                    continue
                if role in CLOSED:
                    raise ParseError(
                        f"step {at}, {step.function}: ${text} stands for {_WORDS[role]}, and a parameter is a name or a value",
                        hint=f"write one of {' '.join(CLOSED[role])}",
                    )
                names.append(text)
                if role != "name":
                    not_entities.add(str(text))
        self.parameters = in_order(names)
        self.entities = frozenset(self.parameters) - not_entities

    def bind(self, values: Mapping[str, GivenText]) -> Linked:
        steps = []
        for step in self._steps:
            texts = tuple([values[text] if type(text) is Hole else text for text in step.texts])
            steps.append(Step(step.function, texts, step.dependencies))
        return Linked(steps, self._warnings)


def _read_steps(program: Program) -> tuple[list[Step], list[str]]:
    if isinstance(program, str) and not program.strip().startswith("["):
        return _text(program), []
    steps, warnings = parse(program)
    return [Step(step.function, tuple(map(hole_or_text, step.texts)), step.dependencies) for step in steps], warnings


def _text(program: str) -> list[Step]:
    steps, call_spans = read_with_care(program, _no_doubt)
    result: list[Step] = []
    for step, call_span in zip(steps, call_spans, strict=True):
        # The span of a quoted name includes its quotes, so that it is no parameter.
        texts = [hole(program[low:high]) or text for text, (low, high) in zip(step.texts, call_span.texts, strict=True)]
        result.append(Step(step.function, tuple(texts)))
    return link(result, call_spans)


def _no_doubt(role: str, text: str) -> bool:
    """Refuse ambiguous commas: a prepared program must not depend on the names of one graph."""
    raise ParseError(
        f"{text!r}: there are more commas than arguments",
        hint="in a program with parameters a name with a comma is in double quotes",
    )
