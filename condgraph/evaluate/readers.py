"""Questions whose answers are known, read from files: JSON lines, and data sets as they are published."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final, overload

from condgraph.engine.errors import LoadError, OptionError, nearest, shortened

# -- cases -------------------------------------------------------------------------------------------
# Questions whose answers are known.


@dataclass(frozen=True, slots=True)
class Case:
    """A question, the texts of its right answer, and the source that it is about, where one is said."""

    question: str
    answers: tuple[str, ...]
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Cases(Sequence[Case]):
    """Questions in the order of their file; `dataset` names the data set they are of, "" for one's
    own; `left_out` says which records of the file are no questions that can be asked, with a reason.
    """

    items: tuple[Case, ...]
    dataset: str = ""
    left_out: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Case]:
        return iter(self.items)

    @overload
    def __getitem__(self, index: int) -> Case: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Case]: ...
    def __getitem__(self, index: int | slice) -> Case | Sequence[Case]:
        return self.items[index]

    def sample(self, many: int, seed: int = 0) -> Cases:
        """So many of them, drawn by `seed`, in their order."""
        if many >= len(self.items):
            return self
        drawn = sorted(Random(seed).sample(range(len(self.items)), many))
        return Cases(tuple(self.items[at] for at in drawn), self.dataset, self.left_out)


# -- readers -----------------------------------------------------------------------------------------
# jsonl          {"question": ..., "answers": [...], "source": ...}, a line each
# metaqa         question<TAB>answer|answer, things in brackets
# wtq            id, utterance, context, targetValue, separated by tabs; the context is the source
# cronquestions  JSON lines with question, answers, template, relations
# pathquestions  question<TAB>answer(answer/answer/)<TAB>path
# movies         JSON lines with question and the answer that two models' Cypher agrees on


#: Characters of a question.
MOST_QUESTION: Final = 100_000
_WTQ_HEAD: Final = "id\tutterance\tcontext\ttargetValue"
_NODE: Final = "node:"

#: What reads a line: a case, or why it is none. Raises `ValueError` for a line that is damaged.
Reader = Callable[[str], Case | str]


def read_cases(path: str | os.PathLike[str], format: str | None = None) -> Cases:
    """The questions of a file, whose format is recognised by its first line unless it is said.

    Raises `LoadError`, with the line, for one that is damaged, and `OptionError` for a format that
    there is none of. Records that are no question with a list of texts as its answer are left out
    and told (`Cases.left_out`).
    """
    place = Path(path)
    if format is not None and format not in FORMATS:
        raise OptionError(
            f"there is no format {format!r} of questions", candidates=nearest(format, FORMATS), hint=", ".join(FORMATS)
        )
    items: list[Case] = []
    left_out: list[str] = []
    reader: Reader | None = None
    for number, line in _lines(place):
        if reader is None:
            format = format or _recognised(line, place)
            reader = FORMATS[format]
            if format == "wtq" and line == _WTQ_HEAD:
                continue
        try:
            if len(line) > MOST_QUESTION * 10:
                raise ValueError(f"the line has {len(line):,} characters")
            found = reader(line)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise LoadError(f"no question of {format}: {type(error).__name__} {error}", file=place.name, row=number) from None
        if isinstance(found, str):
            left_out.append(f"line {number}: {found}")
        else:
            items.append(found)
    if reader is None:
        raise LoadError("there are no questions in it", file=place.name)
    return Cases(tuple(items), _dataset(format or "", place), tuple(left_out))


def _lines(place: Path) -> Iterator[tuple[int, str]]:
    try:
        with place.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line.rstrip("\r\n")
    except OSError as error:
        raise LoadError(f"it cannot be read: {error.strerror}", file=str(place)) from None
    except UnicodeDecodeError:
        raise LoadError("it is no text of UTF-8", file=place.name) from None


def _recognised(line: str, place: Path) -> str:
    if line.lstrip().startswith("{"):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            return "jsonl"
        return "movies" if "opus" in found else "cronquestions" if {"template", "answers"} <= set(found) else "jsonl"
    if line == _WTQ_HEAD:
        return "wtq"
    columns = line.split("\t")
    if len(columns) == 3 and "#" in columns[2]:
        return "pathquestions"
    if len(columns) == 2:
        return "metaqa"
    raise LoadError(
        f"its first line is no question of a format that is known: {shortened(line, 100)!r}",
        file=place.name,
        hint=", ".join(FORMATS),
    )


def _dataset(format: str, place: Path) -> str:
    """The name of the data set, with the hops where the data set has parts by hops."""
    if format not in ("metaqa", "pathquestions"):
        return "" if format == "jsonl" else format
    found = re.search(r"([123])[-_ ]?h(?:op)?s?\b", "/".join(place.resolve().parts[-3:]).lower())
    return f"{format}-{found[1]}" if found else format


# -- one line ------------------------------------------------------------------------------------------


def _question(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > MOST_QUESTION:
        raise ValueError("the question is no text, empty, or far too long")
    return value.strip()


def _jsonl(line: str) -> Case | str:
    found = json.loads(line)
    answers, source = found["answers"], found.get("source")
    if isinstance(answers, str) or not isinstance(answers, list):
        raise TypeError("answers is a list of texts")
    if not all(isinstance(one, str | int | float) and not isinstance(one, bool) for one in answers):
        return "an answer is neither a text nor a number"
    if source is not None and not isinstance(source, str):
        raise TypeError("source is a text")
    return Case(_question(found["question"]), tuple(str(one) for one in answers), source)


def _metaqa(line: str) -> Case | str:
    question, mark, answers = line.partition("\t")
    if not mark:
        raise ValueError("it has no tab")
    return Case(_question(question), tuple(one for one in answers.split("|") if one))


def _wtq(line: str) -> Case | str:
    _, question, source, answers = line.split("\t")
    return Case(_question(_unescaped(question)), tuple(_unescaped(one) for one in answers.split("|")), source)


def _unescaped(text: str) -> str:
    """A cell of the data set: `\\n` is the end of a line, `\\p` a bar, `\\\\` a backslash."""
    return re.sub(r"\\([np\\])", lambda found: {"n": "\n", "p": "|", "\\": "\\"}[found[1]], text)


def _pathquestions(line: str) -> Case | str:
    question, answers, _ = line.split("\t")
    _, opened, inside = answers.rstrip().partition("(")
    if not opened or not inside.endswith(")"):
        raise ValueError("its answers are not in parentheses")
    return Case(_question(question), tuple(one for one in inside[:-1].split("/") if one))


def _movies(line: str) -> Case | str:
    found: Mapping[str, Any] = json.loads(line)
    question, answer, rows = _question(found["question"]), found.get("answer"), found.get("rows")
    if answer is None and isinstance(rows, list):
        if any(len(row) != 1 for row in rows):
            return "its answer is a table of several columns"
        answer = [row[0] for row in rows]
    if not isinstance(answer, list) or not all(isinstance(one, str | int | float) and not isinstance(one, bool) for one in answer):
        return "its answer is no list of texts and numbers"
    return Case(question, tuple(dict.fromkeys(str(one).removeprefix(_NODE) for one in answer)))


#: The formats, by their names.
FORMATS: Final[Mapping[str, Reader]] = {
    "jsonl": _jsonl,
    "metaqa": _metaqa,
    "wtq": _wtq,
    "cronquestions": _jsonl,
    "pathquestions": _pathquestions,
    "movies": _movies,
}
