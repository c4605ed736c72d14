"""Reading what a model wrote: without the fences and the thinking around it, and as JSON.

Replies come as models please: in a fence of Markdown, which may not end where the reply was cut,
after a block of thoughts, with a sentence before. Everything here takes time in proportion to the
text.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from condgraph.engine.errors import ModelError, shortened

_THOUGHTS: Final = ("<think>", "</think>")
_FENCE: Final = re.compile(r"^[ \t]{0,3}(?P<marks>`{3,}|~{3,})[ \t]*+(?P<word>[\w+#.-]*+)[ \t]*+$", re.MULTILINE)
#: Characters of a text in which the beginning of JSON is looked for, and how often it is tried.
_TRIES: Final = 32


def bare(text: str) -> str:
    """What was written, without thoughts before it and without a fence around it.

    Of several fenced parts the first is taken; text before and behind it is left out. A fence that
    does not end (the reply was cut) goes to the end. Control characters but tab and line end go.

    >>> bare("Here it is:\\n```json\\n{}\\n```\\nDone.")
    '{}'
    >>> bare("```\\nFind(a)"), bare("`Find(a)`"), bare("```")
    ('Find(a)', 'Find(a)', '')
    """
    start, end = _THOUGHTS
    stripped = text.lstrip()
    if stripped.startswith(start):
        stripped = stripped.partition(end)[2]
    stripped = "".join(letter for letter in stripped if letter >= " " or letter in "\t\n").strip()
    opened = _FENCE.search(stripped)
    if opened is not None:
        marks = opened["marks"]
        for closed in _FENCE.finditer(stripped, opened.end()):
            if closed["marks"][0] == marks[0] and len(closed["marks"]) >= len(marks) and not closed["word"]:
                return stripped[opened.end() : closed.start()].strip()
        return stripped[opened.end() :].strip()
    if stripped.startswith("```"):
        # On one line.
        return stripped.strip("`").strip()
    if len(stripped) > 1 and stripped[0] == stripped[-1] == "`" and "`" not in stripped[1:-1]:
        return stripped[1:-1].strip()
    return stripped


def json_of(text: str) -> Any:
    """The JSON value of a reply: the whole of it, or the first object or list in it. Raises
    `ModelError` where there is none, or where it was cut.

    >>> json_of('Sure! {"query": "a"} is it.')
    {'query': 'a'}
    """
    stripped = bare(text)
    decoder = json.JSONDecoder(parse_constant=_no_number)
    problem = "it holds no JSON"
    for tries, match in enumerate(re.finditer(r"[\[{]", stripped), 1):
        if tries > _TRIES:
            break
        try:
            return decoder.raw_decode(stripped, match.start())[0]
        except (ValueError, RecursionError) as error:
            if tries == 1:
                problem = f"its JSON cannot be read: {error}"
    raise ModelError(f"the reply {shortened(text, 200)!r} cannot be used: {problem}")


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")
