"""Demonstrations: questions with correct programs, the ones most similar to a question, and learning them
from answers.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from condgraph.ask.programs import VIA_OF
from condgraph.ask.prompt import KnownNames, known_of, masked, mentions_in
from condgraph.engine.algebra import postorder
from condgraph.engine.bounds import check, within
from condgraph.engine.errors import OptionError, PlanError, ReadOnlyError, shortened
from condgraph.languages.registry import detect
from condgraph.models.chat import Usage
from condgraph.names.vocabulary import Vocabulary

if TYPE_CHECKING:
    from condgraph.ask.records import Host
    from condgraph.engine.answer import Answer


# -- demonstrations --------------------------------------------------------------------------------
# A question is stored with its entities and numbers masked, so that questions of the same form are equal
# whatever they are about. A program is stored only if it runs and gives the expected answer, if there is one.


#: The most characters of a question, and of a program.
MAX_QUESTION: Final = 2_000
MAX_PROGRAM: Final = 20_000
#: The weight of the most frequent name, relative to a name in a demonstration with the same question.
_FREQUENT: Final = 0.6
_STATIC: Final = Path(__file__).with_name("prompts") / "demonstrations.v1.jsonl"


@dataclass(frozen=True, slots=True)
class Demo:
    """A question with a program that answers it.

    It has the language ("query", "kopl", "cypher", "pattern"), the question with masked entities, the names
    of the graph in the program, and its source.
    """

    question: str
    program: str
    language: str
    masked: str
    names: tuple[str, ...] = ()
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Similar:
    """A demonstration with the similarity of its question.

    It is 1 for the same form, and 0 for nothing in common and for static demonstrations.
    """

    demo: Demo
    score: float


class Demos:
    """The demonstrations of one graph, in the order in which they were added."""

    def __init__(self, graph: Host, place: Path | None) -> None:
        self._graph, self._place, self._lock = graph, place, Lock()
        #: Whether they are in a file outside the graph, to which the graph's `read_only` does not apply.
        self._is_external = False
        self._items: list[Demo] | None = None
        self._index: tuple[Vocabulary, list[list[int]]] | None = None
        self._used: Counter[str] | None = None

    def __len__(self) -> int:
        return len(self._all())

    def __iter__(self) -> Iterator[Demo]:
        return iter(list(self._all()))

    def __repr__(self) -> str:
        return f"<{len(self)} demonstrations>"

    # -- storage -----------------------------------------------------------------------------------

    def add(
        self,
        question: str,
        program: str,
        answer: Iterable[str] | None = None,
        *,
        source: str | None = None,
        timeout: float | None = None,
    ) -> Demo:
        """Add a question with its program, which is run first.

        Raises the error of the program, and `PlanError` if its answer is not `answer` (texts in any order).
        """
        if not question.strip():
            raise OptionError("the question is empty")
        if len(program) > MAX_PROGRAM or len(question) > MAX_QUESTION:
            raise OptionError(f"a program is a text of at most {MAX_PROGRAM:,} characters, a question of {MAX_QUESTION:,}")
        with within(timeout):
            language = detect(program)
            options: dict[str, Any] = {"source": source} if language == "llm_query" and source is not None else {}
            result = self._graph.query(program, language=language, **options)
            if answer is not None and _normalised(result.texts) != _normalised(answer):
                raise PlanError(
                    f"the program gives {shortened(', '.join(result.texts[:5]) or 'nothing', 200)}, not the expected answer",
                    hint="it is not kept",
                )
            return self.keep(question, program, result, source=source)

    def keep(self, question: str, program: str, answer: Answer, *, source: str | None = None) -> Demo:
        """Add a question with a program that has been run already, and its answer."""
        known = known_of(self._graph._store_of(None), self._graph._survey())
        via = VIA_OF.get(answer.language, answer.language)
        form = masked(question, mentions_in(question, known))
        demo = Demo(" ".join(question.split()), program, via, form, names_of(answer, known), source)
        with self._lock:
            items = self._read()
            if demo in items:
                return demo
            if self._place is not None:
                self._writable()
                with self._place.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(demo), ensure_ascii=False) + "\n")
            items.append(demo)
            self._index = self._used = None
        return demo

    def _writable(self) -> None:
        if self._graph.read_only and not self._is_external:
            raise ReadOnlyError.at(self._graph.place)

    def keep_in(self, path: str | os.PathLike[str]) -> int:
        """Store the demonstrations of a graph on a server or in memory in a file from now on.

        The file has one JSON line for each. Those that are in it already are added without being run again.
        Returns the number of demonstrations. Raises `OptionError` for a graph in a folder, which stores them
        itself, and for a file with other lines, and `OSError` if it cannot be read or written.
        """
        if self._graph._directory is not None:
            raise OptionError("the demonstrations of a graph in a folder are kept with it", hint="demos.save writes them to a file")
        place = Path(path)
        with self._lock:
            before = self._read()
            lines = place.read_text("utf-8").splitlines() if place.exists() else []
            kept = []
            for number, line in enumerate(lines, start=1):
                result = _demo(line)
                # The last line may be incomplete.
                if result is None and line.strip() and number < len(lines):
                    raise OptionError(
                        f"{os.fspath(path)}, line {number}, is not a demonstration", hint="demos.load adds other files"
                    )
                kept += [result] if result is not None else []
            items = list(dict.fromkeys([*kept, *before]))
            text = "".join(json.dumps(asdict(item), ensure_ascii=False) + "\n" for item in items)
            beside = place.with_name(f"{place.name}.new")
            beside.write_text(text, "utf-8")
            beside.replace(place)
            self._place, self._is_external, self._items = place, True, items
            self._index = self._used = None
        return len(items)

    def clear(self) -> None:
        """Remove all demonstrations of the graph."""
        with self._lock:
            if self._place is not None:
                self._writable()
                self._place.unlink(missing_ok=True)
            self._items, self._index, self._used = [], None, None

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write the demonstrations to a file, one JSON line for each. Returns their number."""
        items = self._all()
        Path(path).write_text("".join(json.dumps(asdict(item), ensure_ascii=False) + "\n" for item in items), "utf-8")
        return len(items)

    def load(self, path: str | os.PathLike[str]) -> int:
        """Add the demonstrations of a file, each of which is run, as by `add`.

        The file was written by `save`, or has JSON lines with `question`, `program` and `answer`. Returns how
        many were added.
        """
        kept = 0
        try:
            lines = Path(path).read_text("utf-8").splitlines()
        except OSError as error:
            raise OptionError(f"the demonstrations {os.fspath(path)} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise OptionError(f"the demonstrations {os.fspath(path)} are not UTF-8 text") from None
        for number, line in enumerate(lines, start=1):
            if line.strip():
                try:
                    result = json.loads(line)
                    self.add(result["question"], result["program"], result.get("answer"), source=result.get("source"))
                except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                    raise OptionError(f"{os.fspath(path)}, line {number}, is not a demonstration: {error}") from None
                kept += 1
        return kept

    # -- search ------------------------------------------------------------------------------------

    def similar(self, form: str, most: int, *, via: str | None = None, without: str | None = None) -> list[Similar]:
        """Return the demonstrations whose masked questions are most similar to `form`, each program once.

        `via` restricts them to a language, and `without` excludes those of one question.
        """
        items = self._all()
        if not items or most <= 0:
            return []
        vocabulary, members = self._indexed(items)
        scores = vocabulary.similarities(form)
        result: list[Similar] = []
        programs: set[str] = set()
        considered = min(len(scores), max(4 * most, 32))
        nearest = np.argpartition(-scores, considered - 1)[:considered] if considered < len(scores) else np.arange(len(scores))
        for index in sorted(nearest.tolist(), key=lambda index: (-scores[index], index)):
            count = 0
            for number in members[index]:
                demo = items[number]
                program = _shape(demo)
                if (
                    scores[index] <= 0
                    or (via is not None and demo.language != via)
                    or demo.question == without
                    or program in programs
                ):
                    continue
                programs.add(program)
                result.append(Similar(demo, float(scores[index])))
                count += 1
                # Two of the same form are enough, so that other forms are shown, too.
                if len(result) == most:
                    return result
                if count == 2:
                    break
        return result

    def weights(self, similar: Sequence[Similar]) -> dict[str, float]:
        """Return names with weights from 0 to 1.

        Names in similar demonstrations have a high weight, and others a low one by their frequency.
        """
        result: dict[str, float] = {}
        if similar:
            used = Counter(name for demo in self._all() for name in demo.names) if self._used is None else self._used
            self._used = used
            most = max(used.values(), default=1)
            result = {name: _FREQUENT * math.sqrt(count / most) for name, count in used.items()}
        for item in similar:
            for name in item.demo.names:
                result[name] = max(result.get(name, 0.0), min(item.score, 1.0))
        return result

    def static(self, via: str, most: int) -> list[Similar]:
        """Return the demonstrations for a language that come with the package, about a graph of countries."""
        lines = map(json.loads, _STATIC.read_text("utf-8").splitlines())
        demos = [Demo(line["question"], line["program"], line["language"], "") for line in lines if line["language"] == via]
        return [Similar(demo, 0.0) for demo in demos[:most]]

    def _indexed(self, items: Sequence[Demo]) -> tuple[Vocabulary, list[list[int]]]:
        result = self._index
        if result is None:
            by_form: dict[str, list[int]] = {}
            for number, demo in enumerate(items):
                by_form.setdefault(demo.masked, []).append(number)
            vocabulary = Vocabulary(list(by_form))
            vocabulary.prepare()
            result = self._index = vocabulary, list(by_form.values())
        return result

    def _all(self) -> list[Demo]:
        with self._lock:
            return self._read()

    def _read(self) -> list[Demo]:
        """Return the demonstrations, and first read them from their file. The caller must hold the lock."""
        if self._items is None:
            self._items = []
            if self._place is not None and self._place.exists():
                for line in self._place.read_text("utf-8").splitlines():
                    demo = _demo(line)
                    if demo is not None:
                        self._items.append(demo)
        return self._items

    def learn(
        self,
        pairs: Iterable[tuple[str, Iterable[str]]],
        llm: Any,
        *,
        question: str | None = None,
        m: int = 15,
        k: int = 8,
        on_tried: Callable[[str, bool], None] | None = None,
        **options: Any,
    ) -> Learned:
        """Let a model write programs for questions with known answers, and add those with exactly these answers.

        This ends when there are `k`. With `question`, the `m` most similar pairs are tried, the most similar
        first. Otherwise all are tried in order. Each added program helps with the next. `options` are those of
        `ask`.
        """
        if m < 1 or k < 1:
            raise OptionError("m and k are 1 or more")
        candidates = [(item, _normalised(texts)) for item, texts in pairs]
        if question is not None:
            known = known_of(self._graph._store_of(None), self._graph._survey())
            forms = [masked(item, mentions_in(item, known)) for item, _ in candidates]
            scores = Vocabulary(forms).similarities(masked(question, mentions_in(question, known)))
            order = sorted(range(len(candidates)), key=lambda index: (-scores[index], index))[:m]
            candidates = [candidates[index] for index in order]
        kept: list[Demo] = []
        tried = wrong = failed = calls = 0
        usage = Usage()
        for member, expected in candidates:
            if len(kept) >= k:
                break
            check()
            tried += 1
            result = self._graph.ask(member, llm, **options)
            calls, usage = calls + result.calls, usage + result.usage
            correct = [
                attempt
                for attempt in result.attempts
                if attempt.answer is not None and _normalised(attempt.answer.texts) == expected
            ]
            if correct and correct[0].answer is not None:
                kept.append(self.keep(member, correct[0].program, correct[0].answer, source=correct[0].source))
            elif result.answer is not None:
                wrong += 1
            else:
                failed += 1
            if on_tried is not None:
                on_tried(member, bool(correct))
        return Learned(tuple(kept), tried, wrong, failed, calls, usage)


def _demo(line: str) -> Demo | None:
    """Parse a line of the file. An incomplete line gives None."""
    try:
        result: Mapping[str, Any] = json.loads(line)
        return Demo(**{**result, "names": tuple(result["names"])})
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _shape(demo: Demo) -> str:
    """Return a program without its entities. Two programs of the same shape demonstrate the same."""
    return "\0".join([demo.masked, *demo.names])


def names_of(answer: Answer | None, known: KnownNames) -> tuple[str, ...]:
    """Return the predicates, keys and concepts in the program of an answer."""
    result: dict[str, None] = {}
    plan, keys = getattr(answer, "plan", None), set(known.qualifiers.names)
    for node in [] if plan is None else postorder(plan):
        for name in (*(getattr(node, "predicates", None) or ()), getattr(node, "key", None), getattr(node, "attribute", None)):
            if isinstance(name, str) and (name in known.places or name in keys):
                result[name] = None
    concepts = set(known.concepts.names)
    for node in [] if plan is None else postorder(plan):
        for name in getattr(node, "names", None) or ():
            if isinstance(name, str) and name in concepts:
                result[name] = None
    return tuple(result)


def _normalised(texts: Iterable[Any]) -> list[str]:
    return sorted({" ".join(str(text).split()).casefold() for text in texts})


# -- learning from answers -------------------------------------------------------------------------
# Demonstrations from questions and answers (TrustUQA, section 3.3): the model writes programs, and those
# with the right answers are added.


@dataclass(frozen=True, slots=True)
class Learned:
    """The result of learning.

    It has the added demonstrations, the number of questions that were tried, the number of programs with
    another answer or none, and the cost.
    """

    kept: tuple[Demo, ...]
    tried: int
    wrong: int
    failed: int
    calls: int
    usage: Usage

    def __str__(self) -> str:
        return (
            f"{len(self.kept)} kept of {self.tried} tried: {self.wrong} gave another answer, {self.failed} none; {self.calls} calls"
        )
