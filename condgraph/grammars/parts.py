"""Elements of grammars, independent of a format; names as tries; and output as GBNF, Lark and regular expression."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from condgraph.engine.errors import OptionError, ParseError

# -- parts -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Text:
    """A fixed text."""

    text: str


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference to a rule."""

    name: str


@dataclass(frozen=True, slots=True)
class Seq:
    """A sequence."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Alt:
    """A choice."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """From `least` to `most` repetitions."""

    part: Part
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Chars:
    """One character in some ranges, or outside them."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool = False


Part: TypeAlias = Text | Ref | Seq | Alt | Repeat | Chars
#: The rules of a grammar by name; `root` is the start.
Rules: TypeAlias = Mapping[str, Part]

DIGIT = Chars((("0", "9"),))
#: Most nested branches of a trie; texts that still share a prefix beyond are listed.
MAX_BRANCHES: Final = 40


def seq(*parts: Part | str) -> Part:
    """Return a sequence of parts and fixed texts."""
    return Seq(tuple(Text(part) if isinstance(part, str) else part for part in parts))


def alt(*parts: Part | str) -> Part:
    """Return a choice of parts and fixed texts."""
    result = tuple(Text(part) if isinstance(part, str) else part for part in parts)
    return result[0] if len(result) == 1 else Alt(result)


def maybe(part: Part) -> Part:
    return Repeat(part, 0, 1)


def trie(names: Iterable[str]) -> Part:
    """Return a choice of texts, factored by common prefixes, so that a reader decides at each letter.

    At least one text is needed.
    """
    ordered = sorted(set(names))
    return _branch(ordered, 0, len(ordered), 0, MAX_BRANCHES)


def _branch(names: list[str], start: int, end: int, depth: int, left: int) -> Part:
    if end - start == 1:
        return Text(names[start][depth:])
    if not left:
        return alt(*(name[depth:] for name in names[start:end]))
    shared = _shared(names[start], names[end - 1])
    ended = len(names[start]) == len(shared)
    parts: list[Part] = []
    index = start + ended
    while index < end:
        letter, first = names[index][len(shared)], index
        while index < end and names[index][len(shared)] == letter:
            index += 1
        parts.append(_branch(names, first, index, len(shared), left - 1))
    choice = maybe(alt(*parts)) if ended else alt(*parts)
    return Seq((Text(shared[depth:]), choice)) if len(shared) > depth else choice


def _shared(first: str, second: str) -> str:
    """Return the common prefix of two different texts."""
    most = min(len(first), len(second))
    return first[: next((at for at in range(most) if first[at] != second[at]), most)]


def reached(rules: Mapping[str, Part]) -> Rules:
    """Return the rules that the root needs."""
    needed, pending = {"root"}, ["root"]
    while pending:
        for name in mentioned(rules[pending.pop()]):
            if name not in needed:
                needed.add(name)
                pending.append(name)
    return {name: part for name, part in rules.items() if name in needed}


def mentioned(part: Part) -> set[str]:
    """Return the names of the rules that a part refers to."""
    if isinstance(part, Ref):
        return {part.name}
    if isinstance(part, Seq | Alt):
        return {name for item in part.parts for name in mentioned(item)}
    return mentioned(part.part) if isinstance(part, Repeat) else set()


# -- formats ---------------------------------------------------------------------------------------
# Writes a grammar as GBNF (llama.cpp), for Lark, or as one regular expression.


#: Longest regular expression, in characters; servers refuse those of megabytes.
MAX_REGEX: Final = 4_000_000
#: Most repetitions that Lark is given as such.
_MAX_REPEATS: Final = 9


def gbnf(rules: Rules) -> str:
    """Return the rules as GBNF; `root` comes first."""
    return "".join(f"{name} ::= {_render(part, _gbnf_text, _gbnf_chars, str)}\n" for name, part in _root_first(rules))


def lark(rules: Rules) -> str:
    """Return the rules for Lark; the start is `root`. Names of rules have `_` in place of `-`."""
    forms = _lark_text, _lark_chars, _lark_rule
    return "".join(f"{_lark_rule(name)}: {_render(part, *forms, tilde=True)}\n" for name, part in _root_first(rules))


def regex(rules: Rules) -> str:
    """Return the rules as one regular expression for a whole text; raises `OptionError` if it exceeds `MAX_REGEX`."""
    done: dict[str, str] = {}
    pending = ["root"]
    while pending:
        name = pending[-1]
        missing = [other for other in sorted(mentioned(rules[name])) if other not in done]
        if missing:
            pending += missing
            continue
        pending.pop()
        if name not in done:
            done[name] = _regex(rules[name], done)
            if len(done[name]) > MAX_REGEX:
                raise OptionError(
                    f"the grammar as a regular expression has more than {MAX_REGEX:,} characters",
                    hint="fewer entities, a smaller depth=, or another format",
                )
    return done["root"]


def _root_first(rules: Rules) -> list[tuple[str, Part]]:
    return sorted(rules.items(), key=lambda item: item[0] != "root")


# -- GBNF and Lark ---------------------------------------------------------------------------------


def _render(
    part: Part, text: Callable[[str], str], chars: Callable[[Chars], str], rule: Callable[[str], str], *, tilde: bool = False
) -> str:
    def again(part: Part) -> str:
        return _render(part, text, chars, rule, tilde=tilde)

    if isinstance(part, Text):
        return text(part.text)
    if isinstance(part, Ref):
        return rule(part.name)
    if isinstance(part, Chars):
        return chars(part)
    if isinstance(part, Seq):
        return " ".join(f"({again(item)})" if isinstance(item, Alt) else again(item) for item in part.parts)
    if isinstance(part, Alt):
        return " | ".join(again(item) for item in part.parts)
    if tilde and part.most > _MAX_REPEATS and not mentioned(part.part):
        # Lark expands repetitions, but leaves a regular expression as it is; none may match the empty
        # text.
        pattern = _regex(Repeat(part.part, max(part.least, 1), part.most), {}).replace("/", "\\/")
        return f"/{pattern}/" + ("" if part.least else "?")
    inner = again(part.part)
    inner = inner if isinstance(part.part, Ref | Chars) else f"({inner})"
    if (part.least, part.most) == (0, 1):
        return f"{inner}?"
    return f"{inner}~{part.least}..{part.most}" if tilde else f"{inner}{{{part.least},{part.most}}}"


_SPECIAL: Final = re.compile(r"([\\.^$*+?{}\[\]|()])")
_GBNF_SPECIAL: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _gbnf_text(text: str) -> str:
    return '"' + "".join(_gbnf_letter(letter) for letter in text) + '"'


def _gbnf_letter(letter: str) -> str:
    if letter in _GBNF_SPECIAL:
        return _GBNF_SPECIAL[letter]
    return f"\\x{ord(letter):02X}" if ord(letter) < 32 else letter


def _gbnf_chars(chars: Chars) -> str:
    ranges = "".join(_class_letter(item) + ("" if item == two else "-" + _class_letter(two)) for item, two in chars.ranges)
    return f"[{'^' if chars.negated else ''}{ranges}]"


def _class_letter(letter: str) -> str:
    if ord(letter) < 32 or ord(letter) == 127:
        return f"\\x{ord(letter):02X}"
    return "\\" + letter if letter in '\\]^-"[' else letter


def _lark_rule(name: str) -> str:
    return name.replace("-", "_")


def _lark_text(text: str) -> str:
    return json.dumps(text).replace("\\/", "/") if text else ""


def _lark_chars(chars: Chars) -> str:
    return "/" + _regex_chars(chars).replace("/", "\\/") + "/"


# -- regular expressions ---------------------------------------------------------------------------


def _regex(part: Part, done: dict[str, str]) -> str:
    if isinstance(part, Text):
        return _SPECIAL.sub(r"\\\1", part.text)
    if isinstance(part, Ref):
        return done[part.name]
    if isinstance(part, Chars):
        return _regex_chars(part)
    if isinstance(part, Seq):
        return "".join(_regex(item, done) for item in part.parts)
    if isinstance(part, Alt):
        return f"(?:{'|'.join(_regex(item, done) for item in part.parts)})"
    inner = _regex(part.part, done)
    times = "?" if (part.least, part.most) == (0, 1) else f"{{{part.least},{part.most}}}"
    return inner + times if isinstance(part.part, Chars) else f"(?:{inner}){times}"


def _regex_chars(chars: Chars) -> str:
    ranges = "".join(_class_letter(item) + ("" if item == two else "-" + _class_letter(two)) for item, two in chars.ranges)
    return f"[{'^' if chars.negated else ''}{ranges}]".replace('\\"', '"')


# -- JSON schemas ----------------------------------------------------------------------------------
# Programs as trees, for servers that accept a JSON schema: a tree is an object with one field, and each
# call in it an object whose only key is the function.


def object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with exactly these properties."""
    return {"type": "object", "properties": dict(properties), "required": list(properties), "additionalProperties": False}


def tree_in(text: str, field: str) -> Any:
    """Return the tree in the JSON of a model, None for null; raises `ParseError` for other texts."""
    try:
        result = json.loads(text)
    except (ValueError, RecursionError):
        raise ParseError(f"the {field} is not well-formed JSON") from None
    if not isinstance(result, dict) or field not in result:
        raise ParseError(f'a {field} as a tree is an object with "{field}"')
    return result[field]


def single(tree: Any) -> tuple[str, Any]:
    """Return the only key of an object and its value; "" and None for anything else."""
    return next(iter(tree.items())) if isinstance(tree, dict) and len(tree) == 1 else ("", None)
