"""Demonstrations: questions with programs that are right, the ones most similar to a question, and those learned from answers."""

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

from condgraph.ask.prompt import Known, known_of, masked, mentions_in
from condgraph.engine.algebra import postorder
from condgraph.engine.bounds import check, within
from condgraph.engine.errors import OptionError, PlanError, ReadOnlyError, shortened
from condgraph.languages.registry import detect
from condgraph.models.chat import Usage
from condgraph.names.vocabulary import Vocabulary

if TYPE_CHECKING:
    from condgraph.ask.records import Host
    from condgraph.engine.answer import Answer


# -- demos -------------------------------------------------------------------------------------------
# A question is kept with its things and numbers masked, so that questions of one form are alike
# whatever they are about. A program is kept only if it runs, and gives the answer where one is said.


#: Characters of a question, and of a program, that is kept.
MOST_QUESTION: Final = 2_000
MOST_PROGRAM: Final = 20_000
#: What a name is worth that the most demonstrations use, next to one of the same question.
_USUAL: Final = 0.6
_STATIC: Final = Path(__file__).with_name("prompts") / "demonstrations.v1.jsonl"


@dataclass(frozen=True, slots=True)
class Demo:
    """A question with a program that answers it: its language ("query", "kopl", "pattern"), the
    question with its things masked, the names of the graph that the program uses, the source that
    it is scoped to.
    """

    question: str
    program: str
    language: str
    masked: str
    names: tuple[str, ...] = ()
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Similar:
    """A demonstration, and how similar its question is: 1 for the same form, 0 for nothing in
    common; a static one has 0.
    """

    demo: Demo
    score: float


class Demos:
    """The demonstrations of one graph, in the order in which they were added."""

    def __init__(self, graph: Host, place: Path | None) -> None:
        self._graph, self._place, self._lock = graph, place, Lock()
        #: Whether they stand in a file beside the graph, which its own rights say nothing of.
        self._beside = False
        self._items: list[Demo] | None = None
        self._index: tuple[Vocabulary, list[list[int]]] | None = None
        self._used: Counter[str] | None = None

    def __len__(self) -> int:
        return len(self._all())

    def __iter__(self) -> Iterator[Demo]:
        return iter(list(self._all()))

    def __repr__(self) -> str:
        return f"<{len(self)} demonstrations>"

    # -- keeping -----------------------------------------------------------------------------------

    def add(
        self,
        question: str,
        program: str,
        answer: Iterable[str] | None = None,
        *,
        source: str | None = None,
        timeout: float | None = None,
    ) -> Demo:
        """Keep a question with its program, which is run first. Raises the program's error where it
        does not run, and `PlanError` where it does not give `answer` (texts, in any order).
        """
        if not question.strip():
            raise OptionError("the question is empty")
        if len(program) > MOST_PROGRAM or len(question) > MOST_QUESTION:
            raise OptionError(f"a program is a text of at most {MOST_PROGRAM:,} characters, a question of {MOST_QUESTION:,}")
        with within(timeout):
            language = detect(program)
            options: dict[str, Any] = {"source": source} if language == "llm_query" and source is not None else {}
            given = self._graph.query(program, language=language, **options)
            if answer is not None and _same(given.texts) != _same(answer):
                raise PlanError(
                    f"the program gives {shortened(', '.join(given.texts[:5]) or 'nothing', 200)}, not the answer that was said",
                    hint="it is not kept",
                )
            return self.keep(question, program, given, source=source)

    def keep(self, question: str, program: str, given: Answer, *, source: str | None = None) -> Demo:
        """Keep a question with a program that was run already, and gave `given`."""
        known = known_of(self._graph._store_of(None), self._graph._survey())
        via = {"llm_query": "query"}.get(given.language, given.language)
        form = masked(question, mentions_in(question, known))
        demo = Demo(" ".join(question.split()), program, via, form, _names(given, known, program), source)
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
        if self._graph.read_only and not self._beside:
            raise ReadOnlyError.at(self._graph.place)

    def keep_in(self, path: str | os.PathLike[str]) -> int:
        """Keep them in a file from now on, for a graph on a server or in memory: those that it has are
        taken up, without being run again, those that there are already and those that are added are
        written to it, a JSON line each. Returns how many there are.

        Raises `OptionError` for a graph in a folder, which keeps them itself, and for a file with other
        lines; `OSError` where it cannot be read or written.
        """
        if self._graph._directory is not None:
            raise OptionError("the demonstrations of a graph in a folder are kept with it", hint="demos.save writes them to a file")
        place = Path(path)
        with self._lock:
            before = self._read()
            lines = place.read_text("utf-8").splitlines() if place.exists() else []
            kept = []
            for number, line in enumerate(lines, start=1):
                found = _demo(line)
                # The last line may not have been written to its end.
                if found is None and line.strip() and number < len(lines):
                    raise OptionError(f"{os.fspath(path)}, line {number}, is no demonstration", hint="demos.load adds other files")
                kept += [found] if found is not None else []
            items = list(dict.fromkeys([*kept, *before]))
            text = "".join(json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in items)
            beside = place.with_name(f"{place.name}.new")
            beside.write_text(text, "utf-8")
            beside.replace(place)
            self._place, self._beside, self._items = place, True, items
            self._index = self._used = None
        return len(items)

    def clear(self) -> None:
        """Forget all demonstrations of the graph."""
        with self._lock:
            if self._place is not None:
                self._writable()
                self._place.unlink(missing_ok=True)
            self._items, self._index, self._used = [], None, None

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write them to a file, a JSON line each; returns how many."""
        items = self._all()
        Path(path).write_text("".join(json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in items), "utf-8")
        return len(items)

    def load(self, path: str | os.PathLike[str]) -> int:
        """Add those of a file that `save` wrote, or of lines with `question`, `program` and
        `answer`; each is run, as `add` does. Returns how many were kept.
        """
        kept = 0
        try:
            lines = Path(path).read_text("utf-8").splitlines()
        except OSError as error:
            raise OptionError(f"the demonstrations {os.fspath(path)} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise OptionError(f"the demonstrations {os.fspath(path)} are no text of UTF-8") from None
        for number, line in enumerate(lines, start=1):
            if line.strip():
                try:
                    found = json.loads(line)
                    self.add(found["question"], found["program"], found.get("answer"), source=found.get("source"))
                except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                    raise OptionError(f"{os.fspath(path)}, line {number}, is no demonstration: {error}") from None
                kept += 1
        return kept

    # -- finding -----------------------------------------------------------------------------------

    def similar(self, form: str, most: int, *, via: str | None = None, without: str | None = None) -> list[Similar]:
        """The demonstrations whose masked questions are most like `form`, each program once; `via`
        keeps those of one language, `without` leaves out those of this very question.
        """
        items = self._all()
        if not items or most <= 0:
            return []
        vocabulary, members = self._indexed(items)
        scores = vocabulary.similarities(form)
        found: list[Similar] = []
        programs: set[str] = set()
        many = min(len(scores), max(4 * most, 32))
        nearest = np.argpartition(-scores, many - 1)[:many] if many < len(scores) else np.arange(len(scores))
        for at in sorted(nearest.tolist(), key=lambda at: (-scores[at], at)):
            taken = 0
            for number in members[at]:
                demo = items[number]
                program = _shape(demo)
                if scores[at] <= 0 or (via is not None and demo.language != via) or demo.question == without or program in programs:
                    continue
                programs.add(program)
                found.append(Similar(demo, float(scores[at])))
                taken += 1
                # Of one form two are enough, so that other forms are shown as well.
                if len(found) == most:
                    return found
                if taken == 2:
                    break
        return found

    def weights(self, similar: Sequence[Similar]) -> dict[str, float]:
        """The names that similar demonstrations use, with a weight from 0 to 1; those that many of
        all demonstrations use have a little.
        """
        found: dict[str, float] = {}
        if similar:
            used = Counter(name for demo in self._all() for name in demo.names) if self._used is None else self._used
            self._used = used
            most = max(used.values(), default=1)
            found = {name: _USUAL * math.sqrt(count / most) for name, count in used.items()}
        for one in similar:
            for name in one.demo.names:
                found[name] = max(found.get(name, 0.0), min(one.score, 1.0))
        return found

    def static(self, via: str, most: int) -> list[Similar]:
        """Demonstrations of our own for a language, over a graph of countries."""
        lines = map(json.loads, _STATIC.read_text("utf-8").splitlines())
        own = [Demo(one["question"], one["program"], one["language"], "") for one in lines if one["language"] == via]
        return [Similar(demo, 0.0) for demo in own[:most]]

    def _indexed(self, items: Sequence[Demo]) -> tuple[Vocabulary, list[list[int]]]:
        found = self._index
        if found is None:
            by_form: dict[str, list[int]] = {}
            for number, demo in enumerate(items):
                by_form.setdefault(demo.masked, []).append(number)
            vocabulary = Vocabulary(list(by_form))
            vocabulary.prepare()
            found = self._index = vocabulary, list(by_form.values())
        return found

    def _all(self) -> list[Demo]:
        with self._lock:
            return self._read()

    def _read(self) -> list[Demo]:
        """The items; those of the file that is kept with the graph, at first. The lock is held."""
        if self._items is None:
            self._items = []
            if self._place is not None and self._place.exists():
                for line in self._place.read_text("utf-8").splitlines():
                    demo = _demo(line)
                    if demo is not None:
                        self._items.append(demo)
        return self._items


def _demo(line: str) -> Demo | None:
    """A line of the file; None for one that was not written to its end."""
    try:
        found: Mapping[str, Any] = json.loads(line)
        return Demo(**{**found, "names": tuple(found["names"])})
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _shape(demo: Demo) -> str:
    """A program without its things: two of one shape show the same."""
    return "\0".join([demo.masked, *demo.names])


def _names(given: Answer, known: Known, program: str) -> tuple[str, ...]:
    """The predicates, keys and concepts that a program uses."""
    found: dict[str, None] = {}
    plan, keys = getattr(given, "plan", None), set(known.qualifiers.names)
    for node in [] if plan is None else postorder(plan):
        for name in (*(getattr(node, "predicates", None) or ()), getattr(node, "key", None), getattr(node, "attribute", None)):
            if isinstance(name, str) and (name in known.places or name in keys):
                found[name] = None
    concepts = set(known.concepts.names)
    for node in [] if plan is None else postorder(plan):
        for name in getattr(node, "names", None) or ():
            if isinstance(name, str) and name in concepts:
                found[name] = None
    return tuple(found)


def _same(texts: Iterable[Any]) -> list[str]:
    return sorted({" ".join(str(text).split()).casefold() for text in texts})


# -- learn -------------------------------------------------------------------------------------------
# Demonstrations from questions of which only the answers are known (TrustUQA, section 3.3): the
# model writes programs, and those are kept whose execution is right.


@dataclass(frozen=True, slots=True)
class Learned:
    """What was learned: the demonstrations that are kept, how many questions were tried, how many
    of them gave another answer, and how many none; what it cost.
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


class LearningDemos(Demos):
    """Demonstrations that are added, or learned from answers."""

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
        """Have a model write programs for questions whose answers are known, and keep those that give
        exactly these, until there are `k`.

        With `question`, the `m` pairs most similar to it are tried, the most similar first; else all,
        in their order. Each program that is kept helps with the next. `options` are those of `ask`.
        """
        if m < 1 or k < 1:
            raise OptionError("m and k are 1 or more")
        asked = [(one, sorted({" ".join(str(text).split()).casefold() for text in texts})) for one, texts in pairs]
        if question is not None:
            known = known_of(self._graph._store_of(None), self._graph._survey())
            forms = [masked(one, mentions_in(one, known)) for one, _ in asked]
            scores = Vocabulary(forms).similarities(masked(question, mentions_in(question, known)))
            order = sorted(range(len(asked)), key=lambda at: (-scores[at], at))[:m]
            asked = [asked[at] for at in order]
        kept: list[Demo] = []
        tried = wrong = failed = calls = 0
        usage = Usage()
        for one, wanted in asked:
            if len(kept) >= k:
                break
            check()
            tried += 1
            found = self._graph.ask(one, llm, **options)
            calls, usage = calls + found.calls, usage + found.usage
            right = [
                attempt
                for attempt in found.attempts
                if attempt.answer is not None and sorted({" ".join(t.split()).casefold() for t in attempt.answer.texts}) == wanted
            ]
            if right and right[0].answer is not None:
                kept.append(self.keep(one, right[0].program, right[0].answer, source=right[0].source))
            elif found.answer is not None:
                wrong += 1
            else:
                failed += 1
            if on_tried is not None:
                on_tried(one, bool(right))
        return Learned(tuple(kept), tried, wrong, failed, calls, usage)
