"""What an agent can do with a graph: look at its schema, find names, run programs and patterns, ask
in words, and see what an answer rests on.

Each call is bounded: by a deadline, by the most values, and by the length of texts. Nothing is
written. Errors are the typed ones of the package, whose nearest names put a program right.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, Final

from condgraph.agents.records import LONGEST, Answered, Described, Evidenced, Fact, Matched, Named, Subgraph, answered
from condgraph.engine.algebra import ByName
from condgraph.engine.alternatives import around
from condgraph.engine.bounds import within
from condgraph.engine.errors import OptionError, UnknownNameError, nearest, shortened
from condgraph.engine.store import plan_texts

if TYPE_CHECKING:
    from condgraph.engine.answer import Answer
    from condgraph.graph import Graph

#: The most values, facts or subgraphs that one call gives.
MOST: Final = 1_000
#: Characters of the longest program, pattern, question or name.
MOST_CHARACTERS: Final = 100_000

GUIDE: Final = """\
A graph of entities, their attributes (values) and relations (to entities), each statement with its source.
Look at `schema` first, and at `find` for how a name is spelled; then write a program for `query`.

KoPL, functions in post-fix order, names in double quotes where they hold commas or brackets:
  Find(Nepal) Relate(capital, forward) QueryName()
  FindAll() FilterConcept(mountain) FilterNum(height, 8000 metre, >) QueryName()
  Find(Annapurna I) QueryAttr(height)
  Find(Nepal) Relate(country, backward) SelectAmong(height, largest)
  FindAll() FilterConcept(mountain) Count()
  Find(Annapurna I) Find(Dhaulagiri I) SelectBetween(height, greater)
Filters: FilterConcept, FilterStr, FilterNum, FilterYear, FilterDate (key, value, operator), QFilterStr/Num/Year/Date on qualifiers
of the statements before; sets: And(), Or(); ends: QueryName, Count, QueryAttr, QueryAttrUnderCondition, QueryRelation, SelectAmong,
SelectBetween, QueryAttrQualifier, QueryRelationQualifier, VerifyStr/Num/Year/Date.
Relate(relation, forward) goes from subject to object, backward from object to subject.

Tables: `table` puts the rows that a program gives into groups, sums up, tests, orders and cuts:
group by country show count(), max(height) having count() > 1 order by count() desc limit 3
Sums: count, sum, mean, median, min, max, values, top(n, x). Paths: country.capital; ^country goes backward. Without `group by`
there is a row for each: show name, height
Parameters: write $name for a name or a value, and give it in `parameters`; nothing in it has to be quoted.
Logical query: ?x : exists ?v. award("Nobel", ?v) and born(?v, ?x) and not capital(?x, "France")
Pattern, for `match` (names may be misspelled, directions guessed): (UNKNOWN film 1) -[directed by]-> (Clint Eastwood)
An error names the nearest names: put the program right with them.
"""


class Toolbox:
    """The tools over one graph. Use it from any thread.

    `timeout` (seconds) bounds each call. `llm` is the model of `ask`, in any of its forms
    (`condgraph.models`). With `follow` a store in a folder that is loaded anew is asked anew.
    """

    def __init__(self, graph: Graph, *, llm: Any = None, timeout: float = 30.0, follow: bool = False) -> None:
        self.graph, self.llm, self.timeout = graph, llm, timeout
        self._manifest = graph._directory / "manifest.json" if follow and graph._directory is not None else None
        self._seen = self._written()
        self._lock = Lock()

    def _written(self) -> tuple[int, int] | None:
        """What changes when a generation becomes current."""
        if self._manifest is None:
            return None
        try:
            found = self._manifest.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino

    def _current(self) -> Graph:
        now = self._written()
        if now is not None and now != self._seen:
            with self._lock:
                if now != self._seen:
                    self.graph.refresh()
                    self._seen = now
        return self.graph

    # -- the tools ---------------------------------------------------------------------------------

    def schema(
        self, *, source: str | None = None, concept: str | None = None, predicate: str | None = None, tokens: int = 2_000
    ) -> Described:
        """What can be asked about, as text of about so many tokens, and the counts of the graph; of
        one source, concept or predicate where it is given.
        """
        checked(tokens, "tokens", 100_000)
        with within(self.timeout):
            graph = self._current()
            found = graph.schema(source=source, concept=concept, predicate=predicate, timeout=self.timeout)
            return Described(found.text(tokens), {name: int(count) for name, count in graph.status().counts.items()})

    def find(self, name: str, *, limit: int = 20, cancelled: Event | None = None) -> Named:
        """What a name is in the graph; the nearest names where it is none."""
        checked(limit, "limit")
        short(name, "name")
        with within(self.timeout, cancelled):
            graph = self._current()
            schema = graph.schema(timeout=self.timeout)
            kinds = {
                "concept": [one.name for one in schema.concepts],
                "relation": [one.name for one in schema.predicates if one.relations],
                "attribute": [one.name for one in schema.predicates if one.attributes],
                "qualifier": list(dict.fromkeys(key.name for one in schema.predicates for key in one.qualifiers)),
            }
            is_a = [kind for kind, names in kinds.items() if name in names]
            near = list(dict.fromkeys(one for names in kinds.values() for one in nearest(name, names)))
            try:
                found = graph.kopl([{"function": "Find", "inputs": [name]}], limit=limit)
                entities = [
                    {"id": one.id, "name": shortened(one.name, LONGEST), "kind": one.kind.name.lower()} for one in found.entities
                ]
            except UnknownNameError as error:
                return Named(shortened(name, LONGEST), [], is_a, [], [], [], list(dict.fromkeys([*error.candidates, *near])), 0)
            store = graph._store_of(None)
            has = {way: plan_texts(store, plan, MOST) for way, plan in around(ByName((name,))).items()}
            return Named(
                shortened(name, LONGEST), entities, ["entity", *is_a],
                has["value"], has["forward"], has["backward"],
                [], len(found) + found.cut,
            )  # fmt: skip

    def query(
        self,
        program: str,
        *,
        language: str | None = None,
        table: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        limit: int = 50,
        facts: int = 5,
        cancelled: Event | None = None,
    ) -> Answered:
        """The answer to a program, with the first statements it rests on; with a clause (`table`) a
        table of the rows that the program gives.
        """
        checked(limit, "limit")
        checked(facts, "facts", least=0)
        with within(self.timeout, cancelled):
            return answered(self.asked(program, language, parameters, limit, table), limit, facts)

    def evidence(
        self,
        program: str,
        *,
        language: str | None = None,
        table: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        limit: int = 50,
        offset: int = 0,
        cancelled: Event | None = None,
    ) -> Evidenced:
        """The statements that the answer to a program rests on, each with its sources and rows."""
        checked(limit, "limit")
        checked(offset, "offset", 1 << 31, least=0)
        with within(self.timeout, cancelled):
            answer = self.asked(program, language, parameters, MOST, table)
            found = answer.evidence
            searched = [str(one) for one in getattr(found, "searched", ())]
            texts = [shortened(text, LONGEST) for text in answer.texts[:limit]]
            part = [Fact.of(one) for one in found[offset : offset + limit]]
            return Evidenced(shortened(answer.program, LONGEST), texts, part, offset, len(found), searched)

    def asked(
        self, program: str, language: str | None, parameters: Mapping[str, Any] | None, limit: int, table: str | None = None
    ) -> Answer:
        """The answer itself."""
        short(program, "program")
        short(table or "", "table")
        options: dict[str, Any] = {"language": language} | ({} if table is None else {"table": table})
        graph = self._current()
        if parameters:
            return graph.prepare(program, **options).run(parameters, limit=limit, timeout=self.timeout)
        return graph.query(program, limit=limit, timeout=self.timeout, **options)

    def match(self, pattern: str, *, k: int = 3, limit: int = 20, cancelled: Event | None = None) -> Matched:
        """The subgraphs most similar to a pattern; names may be misspelled, directions guessed."""
        checked(limit, "limit")
        checked(k, "k")
        short(pattern, "pattern")
        found = self._current().match(pattern, k=k, limit=limit, timeout=self.timeout, cancelled=cancelled)
        with within(self.timeout, cancelled):
            unknown = [(at, node.name) for at, node in enumerate(found.pattern.nodes) if not node.known]
            shown = [
                Subgraph(
                    round(one.distance, 6), {name: shortened(one.nodes[at].text, LONGEST) for at, name in unknown},
                    [[shortened(part, LONGEST) for part in triple] for triple in one.triples],
                )
                for one in found.shown
            ]  # fmt: skip
            return Matched(shortened(found.program, LONGEST), shown, len(found), found.exact, list(found.warnings))

    def ask(self, question: str, *, cancelled: Event | None = None) -> dict[str, Any]:
        """The outcome of a question in words, as `Asked.data` gives it: status, answers, text with
        citations, program, choices. Raises `OptionError` where no model is configured.
        """
        short(question, "question")
        if self.llm is None:
            raise OptionError("no language model is configured", hint="write a program for `query`")
        return self._current().ask(question, self.llm, timeout=self.timeout, cancelled=cancelled).data()


def checked(number: int, what: str, most: int = MOST, *, least: int = 1) -> None:
    """Raise `OptionError` for a number out of bounds."""
    if not least <= number <= most:
        raise OptionError(f"{what} is from {least} to {most:,}, not {number}")


def short(text: str, what: str) -> None:
    """Raise `OptionError` for a text that is longer than any that is meant."""
    if len(text) > MOST_CHARACTERS:
        raise OptionError(f"the {what} has {len(text):,} characters; at most {MOST_CHARACTERS:,} are read")
