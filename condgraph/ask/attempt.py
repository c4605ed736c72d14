"""One program resolved and run: in which source, with which meaning of its names, and what came of
it.

A name that stands in several tables is tried in each that is offered; a name that several entities
have is tried as each of them. Where the answers differ, and nothing tells them apart, the person
has to choose.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from condgraph.ask.records import Attempt, Choice, Option, Stage
from condgraph.engine.algebra import ById, ByName, Node, Scan, postorder
from condgraph.engine.bounds import check
from condgraph.engine.errors import (
    AmbiguousNameError,
    CondgraphError,
    InterruptedQueryError,
    LiteralError,
    ParseError,
    PlanError,
    UnknownNameError,
    shortened,
)
from condgraph.engine.facts import EntityKind
from condgraph.engine.lowered import Lowered
from condgraph.engine.passes import rebuild
from condgraph.engine.store import Request
from condgraph.languages.fences import unfenced
from condgraph.languages.pattern.pattern import Pattern
from condgraph.languages.registry import lower as lower_program

if TYPE_CHECKING:
    from condgraph.ask.records import Host
    from condgraph.engine.answer import Answer
    from condgraph.engine.store import KnownSchema

#: Sources that a program is tried in, and meanings of a name.
MOST_TRIED: Final = 10
#: Kinds of unknown names that are words of a language: whoever used them wrote no program of it.
_OF_LANGUAGE: Final = frozenset(("KoPL function", "function", "direction", "operator", "choice", "parameter of get_information"))


@dataclass(slots=True)
class Runner:
    """Runs programs on the store of a graph. `seconds` adds up how long resolving and running took;
    `choose` says what names mean, by id of an entity or name of a source.
    """

    graph: Host
    question: str
    source: str | None = None
    offered: Sequence[str] = ()
    choose: Mapping[str, str] = field(default_factory=dict)
    llm_function: Callable[..., Any] | None = None
    limit: int | None = None
    seconds: dict[str, float] = field(default_factory=lambda: {"resolve": 0.0, "run": 0.0})

    def attempt(self, reply: str, program: str, language: str) -> Attempt:
        """What becomes of a program: an answer, a choice, or where and why it ended."""
        begun = Attempt(reply, program, language, source=self.source)
        try:
            if language == "pattern":
                return self._pattern(begun)
            return self._settled(begun)
        except InterruptedQueryError:
            raise
        except CondgraphError as error:
            return replace(begun, stage=stage_of(error), error=str(error), code=error.code, failure=error)

    # -- programs with plans -----------------------------------------------------------------------

    def _settled(self, begun: Attempt) -> Attempt:
        """A program in its source, with its names as they are meant."""
        chosen = next((key for key in self.choose.values() if key in self.offered), None)
        try:
            answer, lowered = self._answer(begun, self.source or chosen)
        except AmbiguousNameError as error:
            return self._sources(begun, error)
        if chosen is not None:
            begun = replace(begun, source=chosen)
        return self._senses(begun, answer, lowered)

    def _answer(self, begun: Attempt, source: str | None, meant: Mapping[str, str] | None = None) -> tuple[Answer, Lowered]:
        """The answer, and what the program became; each name of `meant` is the entity of that id."""
        seen: list[Lowered] = []
        resolving = 0.0

        def lower(schema: KnownSchema, program: Any, language: str, options: dict[str, Any]) -> Lowered:
            nonlocal resolving
            begin = time.perf_counter()
            found = lower_program(schema, program, language, options)
            if meant:
                found = _meaning(found, meant)
            seen.append(found)
            resolving += time.perf_counter() - begin
            return found

        options: dict[str, Any] = {"on_unknown": "error"}
        if begun.language == "llm_query":
            options |= {"source": source, "llm_function": self.llm_function, "question": self.question}
        begin = time.perf_counter()
        try:
            store = self.graph._store_of(None)
            answer = store.answer(Request(unfenced(begun.program), begun.language, options, self.limit, lower))
            # Values are worked out here, so that what fails fails within the attempt.
            _ = answer.values
        finally:
            self.seconds["resolve"] += resolving
            self.seconds["run"] += time.perf_counter() - begin - resolving
        return answer, seen[-1]

    # -- several sources ---------------------------------------------------------------------------

    def _sources(self, begun: Attempt, error: AmbiguousNameError) -> Attempt:
        """A program whose names stand in several tables: each of the likeliest is tried. Those where
        it gives something, and where fewer names had to be read as others, win.
        """
        ranked = [name for name in self.offered if name in error.candidates]
        ranked += [name for name in error.candidates if name not in ranked]
        tried: list[tuple[int, str, Answer, Lowered]] = []
        for name in ranked[:MOST_TRIED]:
            check()
            try:
                answer, lowered = self._answer(begun, name)
            except InterruptedQueryError:
                raise
            except CondgraphError:
                continue
            if answer.values:
                tried.append((sum("is read as" in one for one in answer.warnings), name, answer, lowered))
        told = f"{shortened(error.message, 200)}: tried {len(ranked[:MOST_TRIED])} of {len(ranked)}, {len(tried)} gave something"
        if not tried:
            failed = replace(begun, stage="resolving", error=str(error), code=error.code, notes=(told,))
            return replace(failed, failure=error)
        least = min(one[0] for one in tried)
        best = [one for one in tried if one[0] == least]
        begun = replace(begun, notes=(f"{told}; with the fewest names read as others: {', '.join(one[1] for one in best)}",))
        if len({tuple(one[2].texts) for one in best}) == 1:
            return self._senses(replace(begun, source=best[0][1]), best[0][2], best[0][3])
        options = tuple(Option(name, name, "", tuple(answer.texts[:5])) for _, name, answer, _ in best)
        return replace(begun, choice=Choice("source", error.message.split("'")[1] if "'" in error.message else "", options))

    # -- several entities of one name --------------------------------------------------------------

    def _senses(self, begun: Attempt, answer: Answer, lowered: Lowered) -> Attempt:
        """An answer, where the names of the program are those of one entity each, or all their
        meanings answer the same; else the meaning that gives something, or a choice.
        """
        names = {name for node in postorder(lowered.plan) if isinstance(node, ByName) for name in node.names}
        found = self._entities(sorted(names))
        meant = {name: self.choose[name] for name, ids in found.items() if self.choose.get(name) in ids}
        several = {name: ids for name, ids in found.items() if len(ids) > 1 and name not in meant}
        if meant:
            answer, lowered = self._answer(begun, begun.source, meant)
        for name, ids in several.items():
            given: dict[str, Answer] = {}
            for ident in ids[:MOST_TRIED]:
                check()
                given[ident] = self._answer(begun, begun.source, {**meant, name: ident})[0]
            speaking = {ident: one for ident, one in given.items() if _says(one)}
            if len({tuple(one.texts) for one in speaking.values()}) > 1:
                options = tuple(Option(ident, name, self._about(ident), tuple(one.texts[:5])) for ident, one in speaking.items())
                return replace(begun, choice=Choice("entity", name, options))
            if len(speaking) == 1 and len(given) > 1:
                ident, answer = next(iter(speaking.items()))
                note = f"{name!r} is the name of {len(ids)} entities; the program gives something for {ident!r} alone"
                begun = replace(begun, notes=(*begun.notes, note))
        stage: Stage | None = None if _says(answer) else "running"
        return replace(
            begun, answer=answer, stage=stage, error="" if stage is None else "the program gives nothing", lowered=lowered
        )

    def _entities(self, names: list[str]) -> dict[str, list[str]]:
        """The ids of the entities of each name; concepts and rows of tables are none."""
        if not names:
            return {}
        plan = ByName(tuple(names))
        made = Lowered(plan, [("", plan)])
        found: dict[str, list[str]] = {}
        for one in self.graph._store_of(None).answer(Request("", "kopl", {}, None, lambda *_: made)).entities:
            if one.kind is EntityKind.ENTITY:
                found.setdefault(one.name, []).append(one.id)
        return found

    def _about(self, ident: str) -> str:
        """The first statements of an entity, to tell it from others of its name."""
        plan = Scan(ById((ident,)), None, "subject", "subject")
        made = Lowered(plan, [("", plan)])
        answer = self.graph._store_of(None).answer(Request("", "kopl", {}, 3, lambda *_: made))
        return "; ".join(f"{one.predicate} {_text(one.object)}" for one in list(answer.evidence)[:3])

    # -- patterns ----------------------------------------------------------------------------------

    def _pattern(self, begun: Attempt) -> Attempt:
        """The subgraphs nearest to a pattern, by the values of the unknown that is asked for."""
        begin = time.perf_counter()
        pattern = Pattern.of(begun.program)
        unknown = [node.name for node in pattern.nodes if not node.known]
        wanted = _asked_for(begun.program)
        group = wanted if wanted in unknown else unknown[0] if unknown else None
        self.seconds["resolve"] += time.perf_counter() - begin
        begin = time.perf_counter()
        answer = self.graph.match(pattern, k=None, group_by=group, limit=self.limit or 100, stretch=True, leave_out=True)
        _ = answer.values
        self.seconds["run"] += time.perf_counter() - begin
        stage: Stage | None = None if answer.values else "running"
        return replace(begun, answer=answer, stage=stage, error="" if stage is None else "no subgraph is like the pattern")


def stage_of(error: CondgraphError) -> Stage:
    """Where a program ended: its text, its names and literals, or its run."""
    if isinstance(error, ParseError) or (isinstance(error, UnknownNameError) and error.kind in _OF_LANGUAGE):
        return "writing"
    if isinstance(error, (UnknownNameError, AmbiguousNameError, LiteralError)):
        return "resolving"
    return "writing" if isinstance(error, PlanError) else "running"


def _says(answer: Answer) -> bool:
    """Whether an answer says anything: a count of nothing is one too, where something was there to
    be counted.
    """
    if answer.values in ([0], [False]):
        # Nothing was found because nothing compares: that is a fault, and no count.
        return not any("cannot be compared" in one for one in answer.warnings)
    return bool(answer.values)


def _meaning(lowered: Lowered, meant: Mapping[str, str]) -> Lowered:
    """A plan in which names stand for one entity each."""
    done: dict[int, Node] = {}
    roots = [lowered.plan, *(node for _, node in lowered.steps)]
    for root in roots:
        for node in postorder(root):
            if id(node) in done:
                continue
            fresh = rebuild(node, done)
            if isinstance(node, ByName) and all(name in meant for name in node.names):
                fresh = ById(tuple(meant[name] for name in node.names))
            done[id(node)] = fresh
    steps = [(label, done[id(node)]) for label, node in lowered.steps]
    notes = {id(done[key]): text for key, text in lowered.notes.items() if key in done}
    return Lowered(done[id(lowered.plan)], steps, lowered.warnings, notes, postorder(done[id(lowered.plan)]))


def _asked_for(program: str) -> str:
    """The unknown that a JSON pattern says is asked for."""
    try:
        found = json.loads(program)
    except (ValueError, RecursionError):
        return ""
    wanted = found.get("answer") if isinstance(found, dict) else None
    return " ".join(wanted.removeprefix("UNKNOWN").split()) if isinstance(wanted, str) else ""


def _text(value: Any) -> str:
    return str(getattr(value, "name", value))
