"""The program in what a model wrote: fences, chatter and JSON around it are taken off.

Nothing is put together here: what is parsed is one connected piece of the reply, or the text of one
JSON string of it. Every reader is linear in the length of the reply, which is cut at `MOST`.
"""

from __future__ import annotations

import json
import re
from typing import Final

from condgraph.languages.kopl.table import FUNCTIONS

#: Characters of a reply that are looked at; programs have at most a few thousand.
MOST: Final = 100_000
_FENCE: Final = re.compile(r"^[ \t]*(?:```|~~~)[^\n`]*$", re.MULTILINE)
_QUERY: Final = re.compile(r"\bQuery[ \t]*+\d\w*+[ \t*_]*+:|\bget_information[ \t]*+\(", re.IGNORECASE)
_STEPS: Final = re.compile(r"^[ \t>*_`#-]*(?:Step[ \t]*\d|Query[ \t]*\d|Target[ \t]+type)", re.IGNORECASE | re.MULTILINE)
_KOPL: Final = re.compile(rf"\b(?:{'|'.join(FUNCTIONS)})[ \t]*\(")
_KOPL_LINE: Final = re.compile(r"^[ \t>*`\"']*+(?:KoPL|Program)?[ \t]*+:?[ \t`\"']*+(?=[A-Z]\w*+[ \t]*+\()", re.MULTILINE)
_ANY_CALL: Final = re.compile(r"\b\w++[ \t]*+\(")
_NONE: Final = re.compile(r"[\s\"'`*{(\[]*(?:NONE|None|null|N/A)[\s\"'`*.)}\]]*")
#: What models write where they have no answer, in a few words of their own.
_GIVES_UP: Final = re.compile(
    r"\b(?:(?:do not|don't|did not|didn't) (?:know|have)|not sure|"
    r"(?:cannot|can't|can not|could not|couldn't|unable to|not able to|not possible to) (?:be )?(?:answer|determine|find|say)|"
    r"(?:no|not enough|insufficient|lacks?(?: the)?) (?:information|data|answer)|"
    r"(?:does not|doesn't|do not|don't) (?:contain|include|say|provide))",
    re.IGNORECASE,
)
#: Keys of JSON replies that hold the program.
_KEYS: Final = ("program", "query", "kopl", "code")


def declines(reply: str) -> bool:
    """Whether the model says that the data does not answer the question."""
    return len(reply) < 40 and _NONE.fullmatch(reply) is not None


def gives_up(reply: str) -> bool:
    """Whether a reply that has no program says in a sentence or two that there is no answer."""
    return len(reply) < 400 and _GIVES_UP.search(" ".join(reply.replace("’", "'").split())) is not None


def program_in(reply: str, via: str) -> tuple[str, str] | None:
    """The program of a reply and its language ("llm_query", "kopl", "pattern"); None where there is
    nothing that looks like one. `via` is what was asked for: "query", "kopl" or "pattern".

    >>> program_in('Sure! ```' + chr(10) + 'Find(Nepal) QueryName()' + chr(10) + '```', "kopl")
    ('Find(Nepal) QueryName()', 'kopl')
    """
    text = reply[:MOST]
    for piece in _pieces(text):
        found = _program(piece, via)
        if found is not None:
            return found
    return None


def _pieces(text: str) -> list[str]:
    """What may be the program, the likeliest first: the text of a JSON object, what stands in
    fences, the whole.
    """
    found = []
    marks = [(one.start(), one.end()) for one in _FENCE.finditer(text)]
    for number in range(0, len(marks), 2):
        # A reply that was cut off ends within its fence.
        stop = marks[number + 1][0] if number + 1 < len(marks) else len(text)
        inside = text[marks[number][1] : stop].strip("\n")
        if inside.strip():
            found.append(inside)
    if not found:
        stripped = text.strip()
        # One line in marks of code.
        found.append(stripped.strip("`") if stripped[:1] == "`" and "\n" not in stripped else text)
    told = [inner for piece in found for inner in _told(piece)]
    return [*told, *found, *([text] if marks else [])]


def _told(text: str) -> list[str]:
    """The program that a JSON object has under one of the usual keys."""
    if text.lstrip()[:1] != "{":
        return []
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    inner = [found[key] for key in _KEYS if isinstance(found, dict) and isinstance(found.get(key), (str, list))]
    return [one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in inner]


def _program(text: str, via: str) -> tuple[str, str] | None:
    if not text.strip():
        return None
    if via == "pattern":
        # Models write a word or two before the object; what is no pattern is complained of by its
        # reader.
        at = min((place for mark in ("{", "[", "(") if (place := text.find(mark)) >= 0), default=-1)
        return None if at < 0 else (text[at:].strip(), "pattern")
    if _QUERY.search(text):
        begins = _STEPS.search(text)
        # A call alone stands where it stands; prose around whole steps is left to the parser.
        if begins is None and (call := _ANY_CALL.search(text)) is not None:
            return text[call.start() :].strip(), "llm_query"
        return text, "llm_query"
    if _KOPL.search(text):
        return _kopl(text), "kopl"
    if _ANY_CALL.search(text):
        # No function that is known: the parser of the language says which one there may be.
        return (_kopl(text), "kopl") if via == "kopl" else (text.strip(), "llm_query")
    return None


def _kopl(text: str) -> str:
    """The lines from the first that begins with a call, up to a line that has none; without marks
    of code around them.
    """
    begins = _KOPL_LINE.search(text)
    found = _KOPL.search(text)
    at = begins.end() if begins is not None else found.start() if found is not None else 0
    kept: list[str] = []
    for line in text[at:].split("\n"):
        if kept and line.strip() and "(" not in line:
            break
        kept.append(line.strip())
    joined = " ".join(line for line in kept if line)
    return joined.rstrip("`\"'.; \t") if joined.rstrip("`\"'.; \t").endswith(")") else joined
