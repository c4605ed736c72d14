"""The W3C's query tests through the SPARQL of programs (`languages.sparql`), in process and on Neo4j.

The language asks a graph in its own vocabulary, and the W3C's data are plain triples. So each test is carried over: every IRI
becomes a name of the graph; an object that is a literal becomes a value, to which `<pred:value>` leads in the query; a variable
that may be either becomes both. What comes back is compared with the W3C's results. What has no plan is refused with a reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import fields, is_dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

import pyoxigraph as ox
import pytest

import condgraph
from condgraph.endpoint.live import Solutions as Found
from condgraph.endpoint.live import _term
from condgraph.engine.errors import OptionError, ParseError, UnsupportedError
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.engine.iris import PRED, XSD
from condgraph.engine.values import Quantity
from condgraph.graph import Graph
from condgraph.languages.registry import lower, request
from condgraph.languages.sparql import lower as lowering
from condgraph.languages.sparql.parse import parse
from condgraph.languages.sparql.syntax import Basic, Group, Iri, Lit, PathPattern, Query, Triple, UnionGroup, Var
from condgraph.sparql.layout import GraphIris
from condgraph.sparql.text.scan import survey
from tests.support.neo4j_servers import pushed
from tests.w3c.suite import QUERY_11, Case, Solutions, cases_of, folder, read_solutions, same_solutions

NAMES = GraphIris("http://condgraph.example/default/")
_WHOLE = {f"{XSD}{name}" for name in ("integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger")}
_NUMBERS = _WHOLE | {f"{XSD}{name}" for name in ("decimal", "double", "float")}


class Beyond(Exception):
    """A test that cannot be carried over: why."""


# -- data ------------------------------------------------------------------------------------------


def ident(term: Any) -> str:
    return f"_:{term.value}" if isinstance(term, ox.BlankNode) else term.value


def value_of(term: ox.Literal) -> Any:
    """A literal as a value of a graph. Raises `Beyond` for what is none."""
    kind = term.datatype.value
    if term.language:
        raise Beyond("data: texts in languages")
    if kind == f"{XSD}string":
        return term.value
    if kind in _NUMBERS:
        try:
            number = Decimal(term.value)
        except InvalidOperation:
            raise Beyond("data: a number that is none") from None
        if not number.is_finite():
            raise Beyond("data: a number that is infinite")
        return Quantity(int(number) if kind in _WHOLE else float(number))
    raise Beyond(f"data: literals of {kind.removeprefix(XSD) if kind.startswith(XSD) else 'another type'}")


def iris_in(part: Any) -> set[str]:
    """The IRIs in a part of a query."""
    if isinstance(part, Iri):
        return {part.iri}
    parts = (
        part if isinstance(part, list | tuple) else [getattr(part, one.name) for one in fields(part)] if is_dataclass(part) else []
    )
    return set[str]().union(*map(iris_in, parts))


def read(case: Case, named: set[str]) -> tuple[Graph, dict[str, set[bool]]]:
    """The data of a test as a graph; and by predicate whether there are objects that are literals, or others. Literals of
    predicates that are not `named` make no difference.
    """
    graph, kinds = condgraph.open(), dict[str, set[bool]]()
    items: list[Any] = []
    seen: dict[tuple[str, str, Any], Any] = {}
    entities: dict[str, None] = {}
    for file in case.data:
        if file.graph is not None:
            raise Beyond("data: named graphs")
        form = ox.RdfFormat.from_media_type(file.media_type)
        for quad in ox.parse(file.path.read_bytes(), form, base_iri=file.base):
            subject, predicate, thing = ident(quad.subject), quad.predicate.value, quad.object
            literal = isinstance(thing, ox.Literal)
            kinds.setdefault(predicate, set()).add(literal)
            entities[subject] = None
            if literal and predicate in named:
                value = value_of(thing)
                if seen.setdefault((subject, predicate, value), thing) != thing:
                    raise Beyond("data: literals of one value")
                items.append(Statement(subject, predicate, value))
            elif not literal:
                entities[ident(thing)] = None
                items.append(Statement(subject, predicate, Ref(ident(thing))))
    graph.add([*(Entity(name, name) for name in entities), *items])
    return graph, kinds


# -- queries ---------------------------------------------------------------------------------------


class Carried:
    """A query over the names of a graph."""

    def __init__(self, kinds: dict[str, set[bool]]) -> None:
        self._kinds, self._count = kinds, 0

    def __call__(self, query: Query) -> Query:
        found: Query = self._part(query)
        return found

    def _part(self, part: Any) -> Any:
        """A part of the tree, everything in it carried over."""
        if isinstance(part, Iri):
            return part if part.iri.startswith(XSD) else Iri(NAMES.entity(part.iri)[1:-1])
        if isinstance(part, Lit):
            if part.language:
                raise Beyond("query: texts in languages")
            return part
        if isinstance(part, Group):
            return replace(part, parts=tuple(self._parts(part)), filters=tuple(map(self._part, part.filters)))
        if isinstance(part, list | tuple):
            return type(part)(map(self._part, part))
        if is_dataclass(part) and not isinstance(part, Var):
            return replace(part, **{one.name: self._part(getattr(part, one.name)) for one in fields(part)})  # type: ignore[type-var]
        return part

    def _parts(self, group: Group) -> Iterator[Any]:
        for part in group.parts:
            if isinstance(part, Basic):
                yield from self._basic(part)
            elif isinstance(part, PathPattern) and any(self._kinds.get(hop.iri, {False}) != {False} for hop, _ in part.hops):
                raise Beyond("query: a path over literals")
            elif isinstance(part, PathPattern) and not part.least and any(True in kinds for kinds in self._kinds.values()):
                raise Beyond("query: a path of no steps, which a literal has")
            else:
                yield self._part(part)

    def _basic(self, part: Basic) -> Iterator[Any]:
        triples: list[Triple] = []
        for one in part.triples:
            kinds = self._kinds.get(one.predicate.iri, {isinstance(one.object, Lit)})
            branches = [self._triples(one, literal) for literal in sorted(kinds) if isinstance(one.object, Var)]
            if isinstance(one.object, Var) and len(branches) > 1:
                yield UnionGroup(tuple(Group((Basic(tuple(branch)),), ()) for branch in branches))
            else:
                triples += self._triples(one, isinstance(one.object, Lit) or (isinstance(one.object, Var) and True in kinds))
        if triples or not part.triples:
            yield Basic(tuple(triples))

    def _triples(self, one: Triple, literal: bool) -> list[Triple]:
        subject, predicate, thing = map(self._part, (one.subject, one.predicate, one.object))
        if not literal:
            return [Triple(subject, predicate, thing)]
        self._count += 1
        node = Var(f".value {self._count}")
        return [Triple(subject, predicate, node), Triple(node, Iri(f"{PRED}value"), thing)]


# -- results ---------------------------------------------------------------------------------------


def plain(term: Any) -> Any:
    """A term of the W3C's results as far as a graph keeps it: of a number its value, whose sums are of doubles."""
    if isinstance(term, ox.Literal) and term.datatype.value in _NUMBERS:
        return ox.Literal(f"{float(term.value):.12g}")
    return ox.Literal(term.value) if isinstance(term, ox.Literal) else term


def there(text: str) -> Any:
    """A term of an answer as one of the W3C's results."""
    (quad,) = ox.parse(f"<s:s> <s:p> {text} .".encode(), ox.RdfFormat.N_TRIPLES)
    if not isinstance(quad.object, ox.NamedNode):
        return plain(quad.object)
    name = NAMES.name_of(quad.object.value)
    return ox.BlankNode(name[2:]) if name.startswith("_:") else ox.NamedNode(name)


def answered(graph: Graph, query: Query, monkeypatch: pytest.MonkeyPatch) -> Found | bool:
    """What a graph answers to a query, whose predicates it need not have."""
    monkeypatch.setattr(lowering, "parse", lambda *_: query)
    store, options = graph._storage.store(None), {"base": NAMES.base, "on_unknown": "empty"}
    schema = store.naming_schema
    made: Any = lower(schema, "", "sparql", options)
    answer = store.answer(request("", "sparql", None, options))
    if made.ask:
        return bool(answer.values[0][0])
    sorts = list(made.sorts.values())
    return Found(tuple(made.sorts), tuple(tuple(map(_term, row, sorts, [NAMES] * len(sorts))) for row in answer.values))


def outcome(case: Case, on: Callable[[Graph], Any], monkeypatch: pytest.MonkeyPatch) -> str:
    """What becomes of a test: "passed", "wrong", or why it is refused."""
    if survey(case.text).form not in ("select", "ask"):
        return "query: CONSTRUCT and DESCRIBE"
    try:
        query = parse(case.text, case.base, {})
        graph, kinds = read(case, iris_in(query))
        query = Carried(kinds)(query)
        with on(graph) as asked:
            found = answered(asked, query, monkeypatch)
    except Beyond as reason:
        return str(reason)
    except UnsupportedError as error:
        return "query: " + re.sub(r"'[^']*'|<[^>]*>|\?\w+", "...", error.missing[0])
    except (OptionError, ParseError) as error:
        return f"query: {type(error).__name__}"
    assert case.result is not None
    wanted = read_solutions(case.result.read_bytes(), case.result.suffix, case.base)
    if isinstance(found, bool) or isinstance(wanted, bool):
        return "passed" if found == wanted else "wrong"
    rows = [{name: there(cell) for name, cell in zip(found.names, row, strict=True) if cell is not None} for row in found.rows]
    expected = replace(wanted, rows=[{name: plain(term) for name, term in row.items()} for row in wanted.rows])
    return "passed" if same_solutions(Solutions(list(found.names), rows), expected, reduced=case.reduced) else "wrong"


def cases() -> list[Case]:
    """The tests that ask a query for its results."""
    root = folder()
    if root is None:
        return []
    manifests = [f"sparql11/{name}/manifest.ttl" for name in QUERY_11 if name != "syntax-query"]
    return [case for case in cases_of(root, [*manifests, "sparql10/manifest-evaluation.ttl"]) if case.result is not None]


def families(outcomes: Mapping[str, str]) -> Counter[str]:
    """How many tests come to each end; refused functions are one."""
    return Counter(re.sub(r"the function \S+", "functions", one) for one in outcomes.values())


needs_data = pytest.mark.skipif(folder() is None, reason="CONDGRAPH_DATA is not set")


@needs_data
@pytest.mark.reads_data
def test_in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """`docs/reference/sparql.md` prints the numbers."""
    found = {case.id: outcome(case, nullcontext, monkeypatch) for case in cases()}
    assert [name for name, one in found.items() if one == "wrong"] == []
    ends = families(found)
    assert (len(found), ends["passed"]) == (508, 118), ends
    assert all(one == "passed" or one.startswith(("data: ", "query: ")) for one in ends), ends


@needs_data
@pytest.mark.reads_data
@pytest.mark.xdist_group("neo4j")
@pytest.mark.parametrize("share", [pytest.param(number, marks=[pytest.mark.slow] * (number > 0)) for number in range(20)])
def test_on_neo4j(share: int, neo4j_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every twentieth of the tests that pass in process."""

    @contextmanager
    def there(graph: Graph) -> Iterator[Graph]:
        with pushed(graph, neo4j_uri, "w3c") as (_, remote):
            yield remote

    passed = [case for case in cases() if outcome(case, nullcontext, monkeypatch) == "passed"]
    for case in passed[share::20]:
        assert outcome(case, there, monkeypatch) == "passed", case.id
