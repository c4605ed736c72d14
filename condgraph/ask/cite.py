"""An answer in words, with the numbers of the statements that it rests on.

The plain form needs no model. A text that a model writes is taken only if every number in brackets
is that of a statement it was shown, and if everything it says stands in the answer, the question or
the statements; otherwise the plain form is given, and a warning says why.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from condgraph.engine.errors import shortened
from condgraph.names.words import STOP, WORD, stem
from condgraph.overview.words import quoted, unmarked
from condgraph.vectors.encoder import fold

if TYPE_CHECKING:
    from condgraph.engine.answer import Answer

#: Values that are said, statements that are cited, and statements looked through for those.
MOST_VALUES: Final = 20
MOST_CITED: Final = 10
_MOST_SEEN: Final = 200
_CITED: Final = re.compile(r"\[(\d{1,4}(?:\s*,\s*\d{1,4})*)\]")


def plain(answer: Answer) -> tuple[str, tuple[str, ...]]:
    """The values of an answer with the numbers of statements, and these statements."""
    texts = answer.texts
    if not texts:
        return "", ()
    statements = cited(answer)
    said = []
    for text in texts[:MOST_VALUES]:
        numbers = [number for number, one in enumerate(statements, start=1) if _stands(text, one)][:3]
        said.append(text + "".join(f" [{number}]" for number in numbers))
    more = f" and {len(texts) - MOST_VALUES} more" if len(texts) > MOST_VALUES else ""
    if not any("[" in one for one in said) and statements:
        # A count, or a verification: it stands in no statement.
        said[-1] += " " + "".join(f"[{number}]" for number in range(1, min(len(statements), 3) + 1))
    return "; ".join(said) + more, tuple(statements)


def cited(answer: Answer) -> list[str]:
    """The statements that show the values of an answer; the first ones where none does."""
    seen = [str(one) for one in islice(answer.evidence, _MOST_SEEN)]
    texts = answer.texts[:MOST_VALUES]
    showing = [one for one in seen if any(_stands(text, one) for text in texts)]
    return list(dict.fromkeys([*showing, *seen]))[:MOST_CITED]


def facts_of(answer: Answer, statements: Sequence[str]) -> str:
    """What a model is shown to say an answer with: values and numbered statements, a JSON string
    each.
    """
    values = unmarked(json.dumps([shortened(text, 200) for text in answer.texts[:MOST_VALUES]], ensure_ascii=True))
    lines = [f"[{number}] {quoted(one, 300)}" for number, one in enumerate(statements, start=1)]
    return "\n".join([f"Answer: {values}", *lines])


def checked(text: str, question: str, answer: Answer, statements: Sequence[str]) -> str:
    """What is wrong with a text that a model wrote of an answer; "" where nothing is."""
    if not text.strip():
        return "it is empty"
    numbers = [int(number) for found in _CITED.finditer(text) for number in found[1].split(",")]
    if not numbers:
        return "it cites no statement"
    wrong = [number for number in numbers if not 1 <= number <= len(statements)]
    if wrong:
        return f"it cites [{wrong[0]}], and {len(statements)} statements were shown"
    values = answer.texts[:MOST_VALUES]
    if values and not any(_stands(one, text) for one in values):
        return "it says no value of the answer"
    known = {stem(word) for place in (question, *statements, *values) for word in WORD.findall(fold(place))}
    body = _CITED.sub(" ", text)
    for found in WORD.finditer(body):
        word = found[0]
        first = not body[: found.start()].strip() or body[: found.start()].rstrip()[-1:] in ".!?:"
        claims = any(c.isdigit() for c in word) or (word[:1].isupper() and not (first and word.casefold() in STOP))
        if claims and stem(fold(word)) not in known and word.casefold() not in STOP and not (first and word[:1].isupper()):
            return f"it says {word!r}, which is neither in the answer nor in the statements"
    return ""


def _stands(text: str, statement: str) -> bool:
    """Whether a value stands in a text as words of it."""
    wanted, place = fold(text), fold(statement)
    at = place.find(wanted)
    while wanted and at >= 0:
        before, after = place[at - 1 : at], place[at + len(wanted) : at + len(wanted) + 1]
        if not (before.isalnum() or after.isalnum()):
            return True
        at = place.find(wanted, at + 1)
    return False
