"""A grammar written as GBNF (llama.cpp), for Lark, or as one regular expression."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final

from condgraph.engine.errors import OptionError
from condgraph.grammars.parts import Alt, Chars, Part, Ref, Repeat, Rules, Seq, Text, mentioned

#: Characters of the longest regular expression; servers refuse those of megabytes.
LONGEST_REGEX: Final = 4_000_000
#: Repetitions that are written out for Lark.
_FEW: Final = 9


def gbnf(rules: Rules) -> str:
    """The rules as GBNF; `root` first."""
    return "".join(f"{name} ::= {_written(part, _gbnf_text, _gbnf_chars, str)}\n" for name, part in _root_first(rules))


def lark(rules: Rules) -> str:
    """The rules for Lark; its start is `root`. Rules of names have `_` for `-`."""
    forms = _lark_text, _lark_chars, _lark_rule
    return "".join(f"{_lark_rule(name)}: {_written(part, *forms, tilde=True)}\n" for name, part in _root_first(rules))


def regex(rules: Rules) -> str:
    """The rules as one regular expression, which takes a whole text; `OptionError` where it would be
    longer than `LONGEST_REGEX`.
    """
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
            if len(done[name]) > LONGEST_REGEX:
                raise OptionError(
                    f"the grammar as a regular expression has more than {LONGEST_REGEX:,} characters",
                    hint="fewer entities, a smaller depth=, or another format",
                )
    return done["root"]


def _root_first(rules: Rules) -> list[tuple[str, Part]]:
    return sorted(rules.items(), key=lambda item: item[0] != "root")


# -- GBNF and Lark ---------------------------------------------------------------------------------


def _written(
    part: Part, text: Callable[[str], str], chars: Callable[[Chars], str], rule: Callable[[str], str], *, tilde: bool = False
) -> str:
    def again(one: Part) -> str:
        return _written(one, text, chars, rule, tilde=tilde)

    if isinstance(part, Text):
        return text(part.text)
    if isinstance(part, Ref):
        return rule(part.name)
    if isinstance(part, Chars):
        return chars(part)
    if isinstance(part, Seq):
        return " ".join(f"({again(one)})" if isinstance(one, Alt) else again(one) for one in part.parts)
    if isinstance(part, Alt):
        return " | ".join(again(one) for one in part.parts)
    if tilde and part.most > _FEW and not mentioned(part.part):
        # Lark spells out what repeats, and reads a regular expression as it is; none may be empty.
        pattern = _regex(Repeat(part.part, max(part.least, 1), part.most), {}).replace("/", "\\/")
        return f"/{pattern}/" + ("" if part.least else "?")
    inner = again(part.part)
    inner = inner if isinstance(part.part, Ref | Chars) else f"({inner})"
    if (part.least, part.most) == (0, 1):
        return f"{inner}?"
    return f"{inner}~{part.least}..{part.most}" if tilde else f"{inner}{{{part.least},{part.most}}}"


_GBNF_SPECIAL: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _gbnf_text(text: str) -> str:
    return '"' + "".join(_gbnf_letter(letter) for letter in text) + '"'


def _gbnf_letter(letter: str) -> str:
    if letter in _GBNF_SPECIAL:
        return _GBNF_SPECIAL[letter]
    return f"\\x{ord(letter):02X}" if ord(letter) < 32 else letter


def _gbnf_chars(chars: Chars) -> str:
    ranges = "".join(_class_letter(one) + ("" if one == two else "-" + _class_letter(two)) for one, two in chars.ranges)
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
        return re.escape(part.text)
    if isinstance(part, Ref):
        return done[part.name]
    if isinstance(part, Chars):
        return _regex_chars(part)
    if isinstance(part, Seq):
        return "".join(_regex(one, done) for one in part.parts)
    if isinstance(part, Alt):
        return f"(?:{'|'.join(_regex(one, done) for one in part.parts)})"
    inner = _regex(part.part, done)
    times = "?" if (part.least, part.most) == (0, 1) else f"{{{part.least},{part.most}}}"
    return inner + times if isinstance(part.part, Chars) else f"(?:{inner}){times}"


def _regex_chars(chars: Chars) -> str:
    ranges = "".join(_class_letter(one) + ("" if one == two else "-" + _class_letter(two)) for one, two in chars.ranges)
    return f"[{'^' if chars.negated else ''}{ranges}]".replace('\\"', '"')
