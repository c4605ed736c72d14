"""The evidence of a plan as one SPARQL 1.1 query for the triples themselves.

A query may return more triples than the plan needs, never fewer. Where SPARQL and the engine decide a test differently (a
comparison of texts, a difference, times), the test is left to the engine, which runs the plan on what was fetched. So an
operator becomes patterns that hold for all of its results.

`Plain` and `WikibaseShape` determine how a statement becomes triples; the rest is the same for both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from hashlib import blake2b
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, Solutions, postorder
from condgraph.engine.errors import UnsupportedError
from condgraph.engine.execute.witness_plan import Unit, units
from condgraph.engine.facts import EntityKind, Ref
from condgraph.engine.iris import RDF, XSD
from condgraph.engine.row_shapes import shapes_of
from condgraph.engine.terms import is_iri
from condgraph.engine.values import DAY_SECONDS, OPEN_END, OPEN_START, Kind, Quantity, Time, civil, format_number
from condgraph.loaders.rdf.inference import SAME
from condgraph.loaders.rdf.load import CLASSES, STATEMENTS
from condgraph.loaders.rdf.structures import GRAPHS, SINGLETON
from condgraph.sparql.compile.conditions import NEVER, TARGET
from condgraph.sparql.dialect import Dialect
from condgraph.sparql.layout import string
from condgraph.sparql.native.mapping import LABEL, NUMBERS, OWN, SINGLETONS, SUBCLASS, TYPE, Mapping, Predicate, is_unknown, node_of

#: The predicate of a row that tells that a node exists; it is no triple of the endpoint.
NODE_EXISTS: Final = "urn:condgraph:there"
#: The most triples of one program; more are an error.
MAX_TRIPLES: Final = 1_000_000
ONTOLOGY: Final = "http://wikiba.se/ontology#"
#: A path from a node to all nodes that are the same, including itself.
_SAME: Final = f"(<{SAME}>|^<{SAME}>)*"
#: The predicate of a unit.
UNIT: Final = ONTOLOGY + "quantityUnit"
_DERIVED: Final = "http://www.w3.org/ns/prov#wasDerivedFrom"
#: Parts of a value node other than the unit, with their columns.
_PARTS: Final = {
    "timeValue": "t",
    "timePrecision": "h",
    "quantityAmount": "q",
    "quantityUpperBound": "g",
    "quantityLowerBound": "k",
}


class Bound(str):
    """A pattern of terms that are given. Stores join patterns in written order, so these come first."""


class Query(str):
    """A pattern that contains a query of its own."""


class Fact(NamedTuple):
    """The terms of a statement: variables, or IRIs in brackets.

    `statement` is its node, and `value` the predicate from there to the object. `triple_ends` are the ends of the triple that it is
    inferred from. `graph` is its named graph, if named graphs stand for statements.
    """

    subject: str
    predicate: str
    object: str
    statement: str = ""
    triple_ends: tuple[str, str] | None = None
    value: str = ""
    graph: str = ""

    @property
    def triple(self) -> tuple[str, str, str]:
        """The terms of the triple that exists."""
        subject, thing = self.triple_ends or (self.subject, self.object)
        return subject, self.predicate, thing

    @property
    def terms(self) -> tuple[str, ...]:
        """All terms."""
        return self.subject, self.predicate, self.object, self.statement, self.value, self.graph, *(self.triple_ends or ())


class Branch(NamedTuple):
    """A part of a query: patterns, and the terms of the columns that it returns."""

    patterns: str
    columns: dict[str, str]


class Part(NamedTuple):
    """A query of some triples, with the columns of its rows."""

    text: str
    columns: tuple[str, ...]


Fresh = Callable[[str], str]
#: Subject, predicate and object of a triple, as columns of a row or IRIs; and the column of its graph, if there is one.
Recipe: TypeAlias = tuple[str, ...]
#: The most languages in which a text is looked up.
_MAX_LANGUAGES: Final = 50
#: The most properties or classes in a list in a query.
LISTED: Final = 500
#: Columns of rows of labels, and of nodes that exist.
_COLUMNS: Final[Recipe] = ("x", "y", "z")


def listed(iris: Iterable[str], between: str = " ") -> str:
    """Return IRIs as a list in a query."""
    return between.join(f"<{iri}>" for iri in iris)


def datatype_of(literal: str) -> str:
    """Return the datatype of a literal; Virtuoso gives none for a text with a language."""
    return f"COALESCE(DATATYPE({literal}), <{RDF}langString>)"


def is_text(term: str) -> str:
    """Return a test that a term is a text, with or without a language."""
    return f"isLiteral({term}) && {datatype_of(term)} IN (<{XSD}string>, <{RDF}langString>)"


def anywhere(patterns: str, *, apart: bool) -> str:
    """Return patterns within a single graph, whichever it is, if named graphs are apart from the default graph."""
    if not apart:
        return patterns
    graph = f"?g{blake2b(patterns.encode(), digest_size=6).hexdigest()}"
    return either((patterns, f"GRAPH {graph} {{ {patterns} }}"))


@dataclass(frozen=True)
class Labels:
    """The names of nodes: predicates that are used for them, and languages."""

    predicates: tuple[str, ...]
    languages: tuple[str, ...]
    apart: bool = False

    def of(self, node: str, predicate: str, text: str) -> str:
        """Return patterns of the names of a node."""
        tags = ", ".join(string(tag) for tag in ("", *self.languages))
        return f"{anywhere(f'{node} <{predicate}> {text} .', apart=self.apart)} FILTER(LCASE(LANG({text})) IN ({tags}))"

    def name(self, node: str, predicate: str, text: str) -> str:
        """Return patterns of the names of a node among which the loader chooses.

        If there are names in the first language that are not blank (one ASCII character is enough to know), these are all.
        """
        if len(self.languages) < 2:
            return self.of(node, predicate, text)
        first, tags = string(self.languages[0]), ", ".join(string(tag) for tag in ("", *self.languages[1:]))
        test = f'LCASE(LANG({text}2)) = {first} && REGEX(STR({text}2), "[!-~]")'
        better = f"{anywhere(f'{node} <{predicate}> {text}2 .', apart=self.apart)} FILTER({test})"
        in_other_language = f"LCASE(LANG({text})) IN ({tags}) && NOT EXISTS {{ {better} }}"
        among = f"FILTER(LCASE(LANG({text})) = {first} || ({in_other_language}))"
        return f"{anywhere(f'{node} <{predicate}> {text} .', apart=self.apart)} {among}"


# -- layouts -----------------------------------------------------------------------------------------


class Layout(Protocol):
    """How statements and memberships are written as triples. `recipes` are the triples of one row, for columns that are bound."""

    recipes: tuple[Recipe, ...]

    def statement(
        self, subject: str, predicates: Sequence[str] | None, thing: str, fresh: Fresh, *, backward: bool = False
    ) -> tuple[str, Fact]:
        """Return patterns of the statements of some predicates, by IRI (None: of any), and their terms.

        `backward` starts from the object, if other patterns give it. Jena keeps the order of patterns around a filter.
        """
        ...

    def qualified(self, fact: Fact, key: str, value: str) -> str:
        """Return patterns of a statement's qualifier, by the IRI of its key; "" if it is no triple."""
        return ""

    def qualifying(self, fact: Fact, key: str, value: str, fresh: Fresh) -> list[str]:
        """Return patterns of a qualifier of any statement, by the IRI of its key, for each way to write qualifiers."""
        ...

    def counting(self, fact: Fact, key: str = "", *, number: bool) -> str:
        """Return patterns that hold if a statement counts and, with `number`, its value or a qualifier's has no unit.

        There are none if that is always true.
        """
        return ""

    def ends(self, e: str, fresh: Fresh) -> list[str]:
        """Return patterns of the subjects, and of the objects, of all statements."""
        ...

    def branches(self, fact: Fact, labels: Labels) -> list[Branch]:
        """Return the triples of a statement and its qualifiers, with the names of their nodes."""
        ...

    def bare(self, fact: Fact, keys: Sequence[str], *, full: bool) -> list[Branch]:
        """Return the triples for the ends of a statement, and the values of some qualifiers by the IRIs of their keys.

        `full` tells whether some of these may have a unit or a precision.
        """
        ...

    def value_predicate(self, iri: str) -> str:
        """Return the predicate whose objects are those of another predicate's statements."""
        return iri

    def forms(self, number: str) -> tuple[str, str] | None:
        """Return the predicates from a subject to a statement, and from there to its value, or None if the property is
        a triple.

        That is for a property whose statements appear in a row only by their ends.
        """
        return None

    def member(self, entity: str, concept: str, fresh: Fresh, *, backward: bool = False) -> tuple[str, Fact]:
        """Return patterns of a membership as it is stated."""
        ...

    def superclass_path(self, concept: str, other: str) -> str:
        """Return patterns of a concept and each concept above it, including itself."""
        ...

    def subclass(self, concept: str, parent: str, fresh: Fresh) -> tuple[str, Fact]:
        """Return patterns of a subclass as it is stated."""
        ...

    def links(self, node: str) -> list[Branch]:
        """Return the links of all nodes that are the same as one."""
        return []


class Plain(Layout):
    """A statement is one triple; qualifiers belong to a node that stands for it, if the mapping has such nodes."""

    def __init__(self, mapping: Mapping, labels: Labels) -> None:
        self._inference = mapping.inference
        #: The nodes that stand for statements, by name.
        self._nodes = {name: node_of(name) for name in mapping.statements}
        self._in_graphs = GRAPHS in self._nodes
        self._hidden = mapping.hidden
        #: Predicates of triples that are not statements, unless a program names them.
        self._unseen = listed((TYPE, SUBCLASS, *mapping.hidden), ", ")
        self._anywhere = partial(anywhere, apart=mapping.apart)
        statement = ("s", "p", "o", "g") if self._in_graphs else ("s", "p", "o")
        self.recipes: tuple[Recipe, ...] = (statement, ("f", "b", "c"), ("o", labels.predicates[0], "l"), _COLUMNS)

    def statement(
        self, subject: str, predicates: Sequence[str] | None, thing: str, fresh: Fresh, *, backward: bool = False
    ) -> tuple[str, Fact]:
        """See `Layout.statement`."""
        if not self._inference:
            return self._triple(subject, predicates, thing, fresh, fresh("p"))
        p, s, o = fresh("p"), fresh("b"), fresh("d")
        alternatives = []
        for inverse in (False, True):
            stating = self._stating(predicates, inverse=inverse)
            first, last = (thing, subject) if inverse else (subject, thing)
            if stating == []:
                continue
            if self._inference.same:
                triple = self._triple(s, stating, o, fresh, p)[0]
                ends = f"{s} {_SAME} {first} . {o} {_SAME} {last} ."
            else:
                triple = self._triple(first, stating, last, fresh, p)[0]
                ends = f"BIND({first} AS {s}) BIND({last} AS {o})"
            if stating is not None and len(stating) == 1:
                ends += f" BIND(<{stating[0]}> AS {p})"
            alternatives.append(f"{triple} {ends}")
        return either(alternatives), Fact(subject, p, thing, "", (s, o))

    def _stating(self, predicates: Sequence[str] | None, *, inverse: bool) -> list[str] | None:
        """Return the predicates of triples from which statements of some predicates may be inferred."""
        if predicates is None:
            return self._inference.inverses if inverse else None
        requested = set(predicates)
        stating = [] if inverse else list(dict.fromkeys(predicates))
        for iri in self._inference.properties:
            if iri not in stating and any(
                implied.property in requested and implied.inverse == inverse for implied in self._inference.implied(iri)
            ):
                stating.append(iri)
        return stating

    def _triple(self, subject: str, predicates: Sequence[str] | None, thing: str, fresh: Fresh, p: str) -> tuple[str, Fact]:
        """Return patterns of the statements of some predicates as they are stated."""
        values = ""
        if predicates is not None and len(predicates) == 1:
            p = f"<{predicates[0]}>"
        else:
            values = (
                f" FILTER({p} NOT IN ({self._unseen})){self._is_no_singleton(p, fresh)}"
                if predicates is None
                else f" VALUES {p} {{ {listed(predicates)} }}"
            )
        tests = f"{self._is_no_node(subject, fresh)}{self._leads_to_no_node(p, predicates, thing, fresh)}"
        parts = [f"{subject} {p} {thing} .{values}{tests}"]
        graph = fresh("g") if self._in_graphs else ""
        for name, node in self._nodes.items():
            bound = values
            if node.predicate and predicates is not None and node.predicate not in predicates:
                continue
            if node.predicate and p.startswith("?"):
                bound = f" BIND(<{node.predicate}> AS {p})"
            f = graph if name == GRAPHS else fresh("f")
            patterns = node.patterns.replace("?f", f) % {"s": subject, "p": p, "o": thing}
            parts.append(f"{patterns} .{bound}{tests if name == GRAPHS else ''}")
        return _one_of(parts), Fact(subject, p, thing, graph=graph)

    def _is_no_node(self, subject: str, fresh: Fresh) -> str:
        """Return a test that a node stands for no statement; triples about such nodes are qualifiers."""
        tests = ""
        for node in self._nodes.values():
            terms = {name: fresh("x") for name in "spo"}
            tests += f" FILTER(NOT EXISTS {{ {node.patterns.replace('?f', subject) % terms} }})"
        return tests

    def _leads_to_no_node(self, p: str, predicates: Sequence[str] | None, thing: str, fresh: Fresh) -> str:
        """Return a test that a triple leads to no node that stands for a statement."""
        tests = ""
        for first, last in filter(None, (node.reached_by for node in self._nodes.values())):
            if predicates is None or first in predicates:
                other_predicate = f"{p} != <{first}> || " if p.startswith("?") else ""
                tests += f" FILTER({other_predicate}NOT EXISTS {{ {thing} <{last}> {fresh('x')} }})"
        return tests

    def _is_no_singleton(self, predicate: str, fresh: Fresh) -> str:
        """Return a test that a predicate is no singleton property."""
        shared = SINGLETONS not in self._nodes
        return "" if shared else f" FILTER(NOT EXISTS {{ {predicate} <{SINGLETON}> {fresh('x')} }})"

    def qualifying(self, fact: Fact, key: str, value: str, fresh: Fresh) -> list[str]:
        """See `Layout.qualifying`."""
        terms, alternatives = {"s": fact.subject, "p": fact.predicate, "o": fact.object}, []
        for node in self._nodes.values():
            f = fresh("f")
            bound = f" BIND(<{node.predicate}> AS {fact.predicate})" if node.predicate else ""
            qualifier = self._anywhere(f"{f} <{key}> {value} .")
            alternatives.append(f"{node.patterns.replace('?f', f) % terms} . {qualifier}{bound}")
        return alternatives

    def ends(self, e: str, fresh: Fresh) -> list[str]:
        """See `Layout.ends`."""
        out, fact = self._triple(e, None, fresh("o"), fresh, fresh("p"))
        # A predicate with only a label is no entity.
        out += f" FILTER({fact.predicate} != <{LABEL}> || NOT EXISTS {{ {fresh('s')} {e} {fresh('o')} }})"
        # An inferred statement has no ends that no stated one has.
        alternatives = [out, self._triple(fresh("s"), None, e, fresh, fresh("p"))[0]]
        classes = listed((*sorted(STATEMENTS), *self._hidden), ", ")
        for node in self._nodes.values():
            # Qualifiers name entities as well.
            f, b = fresh("f"), fresh("b")
            terms = {name: fresh("x") for name in "spo"}
            qualifier = self._anywhere(f"{f} {b} {e} .")
            test = f"{b} NOT IN ({listed((*node.own, TYPE), ', ')}) || ({b} = <{TYPE}> && {e} NOT IN ({classes}))"
            alternatives.append(f"{node.patterns.replace('?f', f) % terms} . {qualifier} FILTER({test})")
        if self._in_graphs:
            alternatives.append(f"GRAPH {e} {{ {fresh('s')} {fresh('p')} {fresh('o')} }}")
        return alternatives

    def branches(self, fact: Fact, labels: Labels) -> list[Branch]:
        """See `Layout.branches`."""
        subject, predicate, thing = fact.triple
        row = {"s": subject, "p": predicate, "o": thing, **({"g": fact.graph} if fact.graph else {})}
        # A single predicate of names fits into the statement's row; several would multiply the rows.
        single = labels.predicates[0] if len(labels.predicates) == 1 and not fact.triple_ends else None
        name = f"OPTIONAL {{ {labels.of(fact.object, single, '?l')} }}" if single else ""
        branches = [Branch(name, {**row, **({"l": "?l"} if single else {})})]
        for label in labels.predicates:
            nodes = (fact.subject,) if single else (fact.subject, fact.object)
            branches += [Branch(labels.of(node, label, "?z"), {"x": node, "y": f"<{label}>", "z": "?z"}) for node in nodes]
        terms = {"s": subject, "p": predicate, "o": thing}
        for node in self._nodes.values():
            node_patterns = f"{node.patterns % terms} . {self._anywhere('?f ?b ?c .')}"
            if node.predicate and predicate.startswith("?"):
                node_patterns = f"FILTER({predicate} = <{node.predicate}>) {node_patterns}"
            elif node.predicate and predicate != f"<{node.predicate}>":
                continue
            # Also the triple that leads to the node, or contains it.
            node_triple = zip("xyz", (term % terms for term in node.triple), strict=True) if node.triple else ()
            branches.append(Branch(node_patterns, {"f": "?f", "b": "?b", "c": "?c", **dict(node_triple)}))
            for label in labels.predicates:
                branches.append(
                    Branch(f"{node_patterns} {labels.of('?c', label, '?z')}", {"x": "?c", "y": f"<{label}>", "z": "?z"})
                )
        return [*branches, *self.links(fact.subject), *self.links(fact.object)] if fact.triple_ends else branches

    def links(self, node: str) -> list[Branch]:
        """See `Layout.links`."""
        columns = {"x": "?x", "y": f"<{SAME}>", "z": "?z"}
        return [Branch(f"{node} {_SAME} ?x . ?x <{SAME}> ?z .", columns)] if self._inference.same else []

    def bare(self, fact: Fact, keys: Sequence[str], *, full: bool) -> list[Branch]:
        """See `Layout.bare`; a value arrives with its language and datatype."""
        return [Branch("", {"s": fact.subject, "p": fact.predicate, "o": fact.object})]

    def member(self, entity: str, concept: str, fresh: Fresh, *, backward: bool = False) -> tuple[str, Fact]:
        """See `Layout.member`."""
        stated = fresh("b") if self._inference.same else entity
        pattern = f"{self._anywhere(f'{stated} <{TYPE}> {concept} .')}{self._is_no_node(stated, fresh)}"
        if stated == entity:
            return pattern, Fact(entity, f"<{TYPE}>", concept)
        return f"{pattern} {stated} {_SAME} {entity} .", Fact(entity, f"<{TYPE}>", concept, "", (stated, concept))

    def superclass_path(self, concept: str, other: str) -> str:
        """See `Layout.above`."""
        return self._anywhere(f"{concept} <{SUBCLASS}>* {other} .")

    def subclass(self, concept: str, parent: str, fresh: Fresh) -> tuple[str, Fact]:
        """See `Layout.subclass`."""
        return self._anywhere(f"{concept} <{SUBCLASS}> {parent} ."), Fact(concept, f"<{SUBCLASS}>", parent)


class WikibaseShape(Layout):
    """A statement is a node between `p:` and `ps:`, with `pq:` for qualifiers and value nodes behind `psv:` and `pqv:`.

    See https://www.mediawiki.org/wiki/Wikibase/Indexing/RDF_Dump_Format.
    """

    def __init__(self, mapping: Mapping, labels: Labels) -> None:
        self._claim = f"{mapping.base}/prop/"
        #: All properties, if they are known and few enough for a list.
        self._properties = (
            [predicate.iri for predicate in mapping.predicates] if mapping.whole and len(mapping.predicates) <= LISTED else []
        )
        label = labels.predicates[0]
        self.recipes: tuple[Recipe, ...] = (
            *(("s", "p", "f"), ("f", "b", "c"), ("c", label, "l"), ("c", UNIT, "u"), ("u", label, "m")),
            *(("c", ONTOLOGY + part, column) for part, column in _PARTS.items()),
            *(("f", "d", "w"), ("w", "i", "j")),
            _COLUMNS,
        )

    def _form(self, iri: str, form: str) -> str:
        return f"<{self._claim}{form}/{iri.removeprefix(self._claim)}>"

    def statement(
        self, subject: str, predicates: Sequence[str] | None, thing: str, fresh: Fresh, *, backward: bool = False
    ) -> tuple[str, Fact]:
        """See `Layout.statement`."""
        f, values, limits = fresh("f"), "", ""
        if predicates is not None and len(predicates) == 1:
            p, v = f"<{predicates[0]}>", self._form(predicates[0], "statement")
        else:
            p, v = fresh("p"), fresh("v")
        if predicates is None:
            limits = f' FILTER(STRSTARTS(STR({p}), "{self._claim}P") && STRSTARTS(STR({v}), "{self._claim}statement/P"))'
        elif p.startswith("?"):
            pairs = " ".join(f"(<{iri}> {self._form(iri, 'statement')})" for iri in predicates)
            values = f"VALUES ({p} {v}) {{ {pairs} }} "
        ends = [f"{subject} {p} {f} .", f"{f} {v} {thing} ."]
        return f"{values}{' '.join(reversed(ends) if backward else ends)}{limits}", Fact(subject, p, thing, f, value=v)

    def qualified(self, fact: Fact, key: str, value: str) -> str:
        """See `Layout.qualified`."""
        return f"{fact.statement} {self._form(key, 'qualifier')} {value} ."

    def qualifying(self, fact: Fact, key: str, value: str, fresh: Fresh) -> list[str]:
        """See `Layout.qualifying`."""
        limit = f'FILTER(STRSTARTS(STR({fact.predicate}), "{self._claim}P"))'
        return [f"{self.qualified(fact, key, value)} {fact.subject} {fact.predicate} {fact.statement} . {limit}"]

    def counting(self, fact: Fact, key: str = "", *, number: bool) -> str:
        """See `Layout.counting`. A number has a node with its unit, which is 1 (Q199) for none."""
        node = self._form(key, "qualifier/value") if key else fact.value.replace("/statement/", "/statement/value/")
        unit = f"{fact.statement} {node} ?w . ?w <{UNIT}> <{self._claim.removesuffix('prop/')}entity/Q199> . " if number else ""
        # Some stores take ten times as long for NOT EXISTS here.
        rank = f"OPTIONAL {{ {fact.statement} <{ONTOLOGY}rank> ?r }}"
        return f"{unit}{rank} FILTER(!BOUND(?r) || ?r != <{ONTOLOGY}DeprecatedRank>)"

    def ends(self, e: str, fresh: Fresh) -> list[str]:
        """See `Layout.ends`. All properties are listed by IRI, since recognising them by their text would test every triple."""
        f, f2, p, v = (fresh(prefix) for prefix in "ffpv")
        if self._properties:
            subjects = f"VALUES {p} {{ {listed(self._properties)} }}"
            objects = f"VALUES {v} {{ {' '.join(self._form(iri, 'statement') for iri in self._properties)} }}"
        else:
            subjects = f'FILTER(STRSTARTS(STR({p}), "{self._claim}P"))'
            objects = f'FILTER(STRSTARTS(STR({v}), "{self._claim}statement/P"))'
        return [f"{subjects} {e} {p} {f} .", f"{objects} {f2} {v} {e} ."]

    def branches(self, fact: Fact, labels: Labels) -> list[Branch]:
        """See `Layout.branches`. A value node's triples and names are optional in the row of the node.

        Every store looks these up row by row, while for alternatives many stores build a list first.
        """
        label = labels.predicates[0]
        optional = [
            labels.of("?c", label, "?l"),
            *(f"?c <{ONTOLOGY}{part}> ?{column} ." for part, column in _PARTS.items()),
            f"?c <{UNIT}> ?u . OPTIONAL {{ {labels.of('?u', label, '?m')} }}",
        ]
        patterns = f"{fact.statement} ?b ?c . FILTER(?b != <{_DERIVED}>) " + " ".join(
            f"OPTIONAL {{ {pattern} }}" for pattern in optional
        )
        row = {"s": fact.subject, "p": fact.predicate, "f": fact.statement}
        columns = ("b", "c", "l", *_PARTS.values(), "u", "m")
        return [
            Branch(patterns, {**row, **{column: f"?{column}" for column in columns}}),
            Branch(labels.of(fact.subject, label, "?z"), {"x": fact.subject, "y": f"<{label}>", "z": "?z"}),
        ]

    def bare(self, fact: Fact, keys: Sequence[str], *, full: bool) -> list[Branch]:
        """See `Layout.bare`; deprecated statements are left out.

        Nothing is optional, since some stores compute optional parts for all statements. The client looks up the names
        of units.
        """
        f, known_predicate = fact.statement, fact.value.startswith("<")
        valid = f"FILTER(NOT EXISTS {{ {f} <{ONTOLOGY}rank> <{ONTOLOGY}DeprecatedRank> }})"
        row = {"s": fact.subject, "p": fact.predicate, "f": f}
        values = ", ".join((fact.value, *(self._form(key, "qualifier") for key in keys)))
        if known_predicate and not keys and not full:
            # The statement's node adds nothing; rows without it are half as long.
            property_id = fact.predicate.strip("<>").removeprefix(self._claim)
            return [Branch(valid, {f"s{property_id}": fact.subject, f"o{property_id}": fact.object})]
        if keys and known_predicate:
            result = [Branch(f"{f} ?b ?c . FILTER(?b IN ({values})) {valid}", {**row, "b": "?b", "c": "?c"})]
        else:
            result = [Branch(valid, {**row, "b": fact.value, "c": fact.object})]
            if keys:
                result.append(Branch(f"{f} ?b ?c . FILTER(?b IN ({values}))", {"f": f, "b": "?b", "c": "?c"}))
        if full:
            nodes = [self._form(key, "qualifier/value") for key in keys]
            if known_predicate:
                nodes.append(fact.value.replace("/statement/", "/statement/value/"))
                limit = f"FILTER(?d IN ({', '.join(nodes)}))" if keys else ""
            else:
                limit = f'FILTER(STRSTARTS(STR(?d), "{self._claim}") && CONTAINS(STR(?d), "/value/"))'
            d = "?d" if limit else nodes[0]
            parts = listed((*(ONTOLOGY + part for part in _PARTS), UNIT), ", ")
            node = f"{f} {d} ?w . {limit} ?w ?i ?j . FILTER(?i IN ({parts}))"
            result.append(Branch(node, {"f": f, "d": d, "w": "?w", "i": "?i", "j": "?j"}))
        return result

    def value_predicate(self, iri: str) -> str:
        """See `Layout.leading`."""
        return self._form(iri, "statement")[1:-1]

    def forms(self, number: str) -> tuple[str, str] | None:
        """See `Layout.forms`."""
        return self._claim + number, f"{self._claim}statement/{number}"

    def member(self, entity: str, concept: str, fresh: Fresh, *, backward: bool = False) -> tuple[str, Fact]:
        """See `Layout.member`."""
        return self.statement(entity, [f"{self._claim}P31"], concept, fresh, backward=backward)

    def superclass_path(self, concept: str, other: str) -> str:
        """See `Layout.above`."""
        return f"{concept} (<{self._claim}P279>/{self._form(self._claim + 'P279', 'statement')})* {other} ."

    def subclass(self, concept: str, parent: str, fresh: Fresh) -> tuple[str, Fact]:
        """See `Layout.subclass`."""
        return self.statement(concept, [f"{self._claim}P279"], parent, fresh, backward=True)


# -- plans -------------------------------------------------------------------------------------------


class Fetcher:
    """Writes the query for the units of a plan."""

    def __init__(
        self,
        mapping: Mapping,
        dialect: Dialect,
        languages: Callable[[str], tuple[str, ...] | None],
        numbers: Callable[[Predicate], Predicate | None],
        classes: Callable[[Sequence[str], str], Sequence[str] | None],
    ) -> None:
        #: `languages` returns those of a predicate's objects, if all are texts (`text_languages`); `numbers` returns the kinds and
        #: units of all values of a sampled predicate; `classes` returns the classes below some names, by their query, or None
        #: if they are too many for a list.
        self.mapping, self._dialect, self._languages, self._numbers, self._classes = mapping, dialect, languages, numbers, classes
        #: Predicates with the kinds of all their values, where the mapping has those of a sample.
        self._counted: dict[str, Predicate] = {}
        self._predicates = {predicate.name: predicate for predicate in mapping.predicates}
        self._qualifiers = {predicate.name: predicate for predicate in mapping.qualifiers if not predicate.iri.startswith(OWN)}
        self._keys = {name: predicate.iri for name, predicate in self._qualifiers.items()}
        iris = {predicate.iri for predicate in mapping.predicates}
        naming = mapping.labels[:1] if mapping.shape == "wikibase" else mapping.labels
        #: Predicates of names that are used.
        self.labels = [iri for iri in naming if iri in iris] or list(naming[:1])
        self._labels = Labels(tuple(self.labels), mapping.languages, mapping.apart)
        self._anywhere = partial(anywhere, apart=mapping.apart)
        shape = WikibaseShape if mapping.shape == "wikibase" else Plain
        self.layout: Layout = shape(mapping, self._labels)
        self._variables = 0

    def fresh(self, prefix: str) -> str:
        """Return a fresh variable."""
        self._variables += 1
        return f"?{prefix}{self._variables}"

    # -- the query ---------------------------------------------------------------------------------

    def union(self, parts: Sequence[Part]) -> str:
        """Return some parts as one query, whose rows `read` reads."""
        if not parts:
            return f"SELECT ?x ?y ?z WHERE {{ ?x ?y ?z . {NEVER} }}"
        columns = dict.fromkeys(column for part in parts for column in part.columns)
        chosen, union = " ".join(f"?{column}" for column in columns), either(part.text for part in parts)
        return f"SELECT {chosen} WHERE {{ {union} }} LIMIT {MAX_TRIPLES + 1}"

    def parts(self, fetched: Sequence[Unit]) -> list[Part]:
        """Return the parts of the query of some units, each a query."""
        return list(dict.fromkeys(part for unit in fetched for part in self._unit(unit)))

    def shown(self, key: str, *, qualifier: bool = False) -> str:
        """Return the query of how the values of an attribute or qualifier are read (`snapshot.readings`).

        A row has a sort (`?k`: "whole", "fraction" or "long", beyond 64 bits, for numbers; "truth" or "word" for
        texts), a value of it (`?o`), and the subject (`?s`) and predicate (`?p`) of its statement. Kinds that a look
        found often come from a sample, so they do not help here.
        """
        s, p, o, f = (self.fresh(prefix) for prefix in "epof")
        if qualifier:
            iri = self._keys[key]
            fact = Fact(s, p, self.fresh("d"), f)
            patterns = [_one_of(self.layout.qualifying(fact, iri, o, self.fresh))]
        else:
            iri = ""
            patterns, fact = self._scan(alg.Scan(None, (key,), family="attribute"), s, o)
        # Virtuoso evaluates both sides of &&, and has no number for a text.
        truth, number = f'STR({o}) IN ("true", "false")', f"IF(isNumeric({o}), {o}, 0)"
        tests = {
            "whole": f"isNumeric({o}) && {o} = FLOOR({number})",
            "fraction": f"isNumeric({o}) && {o} != FLOOR({number})",
            "long": f"DATATYPE({o}) IN (<{XSD}double>, <{XSD}float>) && ABS({number}) >= 9.223372036854775808e18",
            "truth": f"isLiteral({o}) && {truth}",
            "word": f"{is_text(o)} && !({truth})",
        }
        branches = []
        for name, test in tests.items():
            first = "" if name in ("whole", "truth") else f"ORDER BY {o} STR({fact.subject}) "
            columns = f"({string(name)} AS ?k) ({fact.subject} AS ?s) ({fact.predicate} AS ?p) ({o} AS ?o)"
            counting = self.layout.counting(fact, iri, number=name in ("whole", "fraction", "long"))
            where = f"{' '.join(patterns)} FILTER({test}) {counting}"
            branches.append(f"SELECT {columns} WHERE {{ {where} }} {first}LIMIT 1")
        return f"SELECT ?k ?s ?p ?o WHERE {{ {either(branches)} }}"

    # -- what the answer alone needs ----------------------------------------------------------------

    def answering(self, plan: Node) -> list[Part] | None:
        """Return the query parts for a plan's answer, without what only its evidence shows (other qualifiers, names).

        It is None if an operator may read more.
        """
        order = postorder(plan)
        if not self._is_direct or not all(map(_is_bare, order)):
            return None
        needed = units(plan, beyond(order))
        if any(unit.named is not None for unit in needed):
            return None
        keys = tuple(
            dict.fromkeys(node.key for node in order if isinstance(node, alg.WhereQualifier | alg.Qualifiers) and node.key)
        )
        producer = plan.values if isinstance(plan, alg.Distinct) else plan
        shows_values = isinstance(producer, alg.Objects | alg.Qualifiers)
        reads = _Reads(keys, shows_values or any(isinstance(node, alg.AnySatisfies) and _compares_text(node) for node in order))
        named_sets = [node.entities for node in order if isinstance(node, alg.Names)]
        named_sets += [plan] if isinstance(plan, alg.Entities) else [alg.Reached(plan)] if isinstance(plan, alg.Facts) else []
        parts = [part for unit in needed for part in self._bare_unit(unit, reads)]
        parts += [part for node in named_sets if not isinstance(node, alg.ByName) for part in self._names_of(node)]
        return list(dict.fromkeys(parts))

    @property
    def _is_direct(self) -> bool:
        """Tell whether each statement is a triple or a Wikibase statement: none is stated elsewhere or inferred."""
        return not (self.mapping.statements or self.mapping.times or self.mapping.infer)

    def ends(self, wanted: Sequence[Unit]) -> list[Part] | None:
        """Return the query parts for the ends of some statements, without names and qualifiers.

        It is None if more is needed: the subject determines whether a label is a name.
        """
        label_names = [name for name, predicate in self._predicates.items() if predicate.iri in self.labels]
        scans = [part for unit in wanted for part in postorder(unit.compiled) if isinstance(part, alg.Scan)]
        if not self._is_direct or any(
            scan.predicates is None or not set(label_names).isdisjoint(scan.predicates) for scan in scans
        ):
            return None
        return list(dict.fromkeys(part for unit in wanted for part in self._bare_unit(unit, _Reads((), names=False))))

    def literals(self, predicates: tuple[str, ...]) -> list[Part] | None:
        """Return the query part for the distinct literals of some predicates, as if of one subject.

        It is None if their statements must be fetched.
        """
        if not self._is_direct or self.mapping.shape != "plain":
            return None
        self._variables = 0
        patterns, fact = self._scan(alg.Scan(None, predicates, family="attribute"), self.fresh("s"), self.fresh("o"))
        columns = {"x": f"<{OWN}any>", "y": fact.predicate, "z": fact.object}
        return [self._branch(patterns, (fact.predicate, fact.object), Branch(f"FILTER(isLiteral({fact.object}))", columns))]

    # -- numbers -----------------------------------------------------------------------------------

    def counting(self, plan: Node) -> str | None:
        """Return the query of a number of entities (`?n`) that the endpoint can count exactly, or None if the engine must.

        These are all entities, members of classes, and what relations lead to, from or to these.
        """
        mapping, self._variables = self.mapping, 0
        if not isinstance(plan, alg.Count) or not self._is_direct or mapping.shape != "plain":
            return None
        disjoint: dict[str, None] = {}
        exact = self._exact(plan.of, "?e", disjoint)
        if exact is None or isinstance(_joined(exact), Query):
            return None
        patterns = exact or self._all(alg.AllEntities(), "?e")
        return f"SELECT (COUNT(DISTINCT ?e) AS ?n) WHERE {{ {_joined([*patterns, *map(self._no_class, disjoint)])} }}"

    def _exact(self, node: Node | None, e: str, disjoint: dict[str, None]) -> list[str] | None:
        """Return patterns that hold for each entity of a set and for nothing else except classes; none for all entities.

        If classes may be among them, the variable is added to `disjoint`, whose variables must be no class. It is None if
        the engine must decide.
        """
        if node is None:
            return []
        if isinstance(node, alg.AllEntities) and node.source is None and {EntityKind.ENTITY, EntityKind.ROW} == set(node.kinds):
            disjoint[e] = None
            return []
        if isinstance(node, alg.Members) and isinstance(node.concepts, alg.ByName):
            disjoint[e] = None
            # Names in other languages do not name a class.
            classes = [iri for iri, (name, _) in self.mapping.concepts.items() if name in node.concepts.names]
            listable = classes and len(self.mapping.concepts) <= LISTED
            return self.entities(alg.Members(alg.ById(tuple(classes))), e) if listable else None
        if isinstance(node, alg.Intersect):
            parts = [self._exact(part, e, disjoint) for part in node.parts]
            return [pattern for part in parts if part is not None for pattern in part] if None not in parts else None
        scan = node.facts if isinstance(node, alg.Reached) else None
        if not isinstance(scan, alg.Scan) or scan.source or scan.family != "relation" or not (iris := self.iris(scan.predicates)):
            return None
        s, o = (e, self.fresh("o")) if scan.reach == "subject" else (self.fresh("s"), e)
        anchor = self._exact(scan.of, s if scan.anchor == "subject" else o, disjoint)
        # That is looked up for each row.
        literals = not self.mapping.whole or any(self._predicates[name].values for name in scan.predicates or ())
        limit = f"FILTER(!isLiteral({o}))" if literals else ""
        return None if anchor is None else [*anchor, self.layout.statement(s, iris, o, self.fresh)[0], limit]

    def _no_class(self, e: str) -> str:
        """Return a test that a node is no class; comparing with a list of all classes avoids a lookup for each node."""
        x, k = self.fresh("x"), self.fresh("k")
        declared = f"VALUES {k} {{ {listed(sorted(CLASSES))} }} {e} <{TYPE}> {k}"
        classes = (f"{x} <{TYPE}> {e}", f"{e} <{SUBCLASS}> {x}", f"{x} <{SUBCLASS}> {e}", declared)
        return f"MINUS {_query([e], [either(classes)])}"

    def labels_of(self, iris: Iterable[str]) -> str:
        """Return the query of the labels of some nodes."""
        return f"SELECT DISTINCT ?x ?z WHERE {{ VALUES ?x {{ {listed(iris)} }} {self._labels.of('?x', self.labels[0], '?z')} }}"

    def _bare_unit(self, unit: Unit, reads: _Reads) -> Iterable[Part]:
        node, self._variables = unit.compiled, 0
        if isinstance(node, alg.Facts):
            patterns, fact = self.facts(node)
            yield from self._bare_fact(patterns, fact, node, reads)
        elif unit.concepts is not None:
            yield from self._bare_members(unit, unit.concepts)
        else:
            e = self.fresh("e")
            patterns = self.entities(node, e)  # type: ignore[arg-type]
            by_label = isinstance(node, alg.ByName) and self.mapping.shape == "wikibase" and not self.iris_named(node.names)
            if not by_label:
                # A node that is named by its IRI may have no label.
                yield self._existing(patterns, e)
            if isinstance(node, alg.ByName):
                yield from self._names(patterns, e)

    def _bare_fact(self, patterns: list[str], fact: Fact, node: alg.Facts, reads: _Reads) -> Iterable[Part]:
        kinds, qualifiers = self._values(node), [self._qualifiers[key] for key in reads.keys if key in self._qualifiers]
        predicates = [] if kinds == {Kind.ENTITY} else self._predicates_of(node)
        full = (
            predicates is None
            or any(map(_has_nodes, predicates))
            or any(not self.mapping.whole or _has_nodes(key) for key in qualifiers)
        )
        for branch in self.layout.bare(fact, [key.iri for key in qualifiers], full=full):
            yield self._branch(patterns, fact.terms, branch)
        predicate = fact.predicate
        if (
            self.mapping.shape == "plain"
            and not isinstance(node, alg.Scan)
            and (predicate[0] == "?" or predicate[1:-1] in self.labels)
        ):
            # Without the node's name, the label that a test finds would count as its name and not as a statement.
            yield from self._names(patterns, fact.subject)
        if reads.names or _compares_text(node):
            if (kinds is None or Kind.ENTITY in kinds) and not _is_named(node):
                yield from self._names(patterns, fact.object)
            for key in qualifiers:
                pattern = self.layout.qualified(fact, key.iri, "?c")
                if pattern and (key.relations or not self.mapping.whole):
                    yield from self._names([*patterns, pattern], "?c")

    def _bare_members(self, unit: Unit, concepts: Node) -> Iterable[Part]:
        for patterns, fact in (self._members(unit, self.fresh("e"), concepts), self._subclasses(concepts)):
            for branch in self.layout.bare(fact, (), full=False):
                yield self._branch(patterns, fact.terms, branch)

    def nodes(self, node: alg.Entities) -> list[Part]:
        """Return the parts with some nodes and their labels."""
        self._variables = 0
        e = self.fresh("e")
        return list(self._of_node(self.entities(node, e), e))

    def _names_of(self, node: alg.Entities) -> Iterable[Part]:
        self._variables = 0
        e = self.fresh("e")
        return self._names(self.entities(node, e), e)

    def _names(self, patterns: list[str], e: str) -> Iterable[Part]:
        """Return the names of nodes, and no other labels."""
        for label in self.labels:
            yield self._branch(patterns, [e], Branch(self._labels.name(e, label, "?z"), {"x": e, "y": f"<{label}>", "z": "?z"}))

    # -- units --------------------------------------------------------------------------------------

    def read(self, rows: Iterable[Any], variables: Iterable[str]) -> Iterator[tuple[Any, ...]]:
        """Yield the distinct triples in the rows of a result, as pyoxigraph terms, with the name of a named graph last.

        A node that exists has the predicate `NODE_EXISTS`.
        """
        import pyoxigraph

        present = set(variables)
        seen: set[tuple[Any, ...]] = set()
        rows = list(rows)
        for variable in present:
            if variable[0] == "s" and variable[1:] and (forms := self.layout.forms(variable[1:])):
                claim, statement = map(pyoxigraph.NamedNode, forms)
                for row in rows:
                    if (subject := row[variable]) is not None:
                        node = pyoxigraph.BlankNode()
                        yield subject, claim, node
                        yield node, statement, row[f"o{variable[1:]}"]
        recipes = [
            tuple(part if len(part) == 1 else pyoxigraph.NamedNode(part) for part in recipe if len(part) > 1 or part in present)
            for recipe in self.layout.recipes
            if all(part in present for part in recipe[:3] if len(part) == 1)
        ]
        for row in rows:
            for subject, predicate, thing, *graph in recipes:
                a, c = row[subject], row[thing]
                b = row[predicate] if isinstance(predicate, str) else predicate
                if a is None or b is None or c is None:
                    continue
                g = row[graph[0]] if graph else None
                triple = (a, b, c) if g is None else (a, b, c, g)
                if triple not in seen:
                    seen.add(triple)
                    yield triple

    def in_units(self, triples: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """Yield the triples of value nodes that were not fetched because the look already knows them.

        These are numbers of some statements or qualifiers, all in the same unit.
        """
        import pyoxigraph

        units, triples = self.mapping.value_nodes, list(triples)
        fetched_nodes = {(a, b.value) for a, b, *_ in triples}
        if self._counted:
            units = units | replace(self.mapping, predicates=tuple(self._counted.values()), qualifiers=(), whole=True).value_nodes
        amount, unit_predicate = pyoxigraph.NamedNode(ONTOLOGY + "quantityAmount"), pyoxigraph.NamedNode(UNIT)
        for a, b, c, *_ in triples:
            if b.value in units and isinstance(c, pyoxigraph.Literal) and c.datatype.value in NUMBERS:
                node, (leading, iri) = pyoxigraph.BlankNode(), units[b.value]
                if (a, leading) in fetched_nodes:
                    continue
                yield from (
                    *((a, pyoxigraph.NamedNode(leading), node), (node, amount, c)),
                    (node, unit_predicate, pyoxigraph.NamedNode(iri)),
                )

    def _unit(self, unit: Unit) -> Iterable[Part]:
        # Equal patterns must give equal texts.
        node, self._variables = unit.compiled, 0
        if isinstance(node, alg.Facts):
            flips = _undirected(node)
            for flipped in (False, True) if flips else (False,):
                patterns, fact = self.facts(node, flipped=flipped)
                yield from self._of_fact(patterns, fact)
            return
        e = self.fresh("e")
        patterns = self.entities(node, e)  # type: ignore[arg-type]
        yield from self._of_node(patterns, e)
        if unit.concepts is not None:
            for lines, fact in (self._members(unit, e, unit.concepts), self._subclasses(unit.concepts)):
                yield from self._of_fact(lines, fact)

    def _of_fact(self, patterns: list[str], fact: Fact) -> Iterable[Part]:
        for branch in self.layout.branches(fact, self._labels):
            yield self._branch(patterns, fact.terms, branch)

    def _branch(self, patterns: list[str], terms: Iterable[str], branch: Branch) -> Part:
        """Return the query of a branch of some statements, or of an entity.

        Virtuoso loses rows if a query is joined with more than its own patterns in a group, so these become a group of
        their own.
        """
        if branch.patterns and not self._dialect.joins_paths and isinstance(_joined(patterns), Query):
            patterns = [_query(dict.fromkeys(term for term in terms if term.startswith("?")), patterns)]
        chosen = " ".join(f"?{name}" if term == f"?{name}" else f"({term} AS ?{name})" for name, term in branch.columns.items())
        return Part(f"SELECT DISTINCT {chosen} WHERE {{ {_joined([*patterns, branch.patterns])} }}", tuple(branch.columns))

    def _of_node(self, patterns: list[str], e: str) -> Iterable[Part]:
        yield self._existing(patterns, e)
        yield from self._named(patterns, e)

    def _existing(self, patterns: list[str], e: str) -> Part:
        return self._branch([*patterns, f"FILTER(!isLiteral({e}))"], [e], Branch("", {"x": e, "y": f"<{NODE_EXISTS}>", "z": '""'}))

    def _named(self, patterns: list[str], e: str) -> Iterable[Part]:
        labels = (Branch(self._labels.of(e, label, "?z"), {"x": e, "y": f"<{label}>", "z": "?z"}) for label in self.labels)
        for branch in (*labels, *self.layout.links(e)):
            yield self._branch(patterns, [e], branch)

    def _members(self, unit: Unit, e: str, concepts: Node) -> tuple[list[str], Fact]:
        """Return patterns of the memberships of some entities in concepts, and their terms.

        A store may lose rows if the path to the concepts is in a query twice.
        """
        members = unit.compiled
        parts = members.parts if isinstance(members, alg.Intersect) else (members,)
        sets = [part for part in parts if not (isinstance(part, alg.AllEntities) or part in unit.known)]
        if not unit.known:
            sets = list(parts)
        sets.sort(key=_is_many)
        member_patterns = [line for part in sets for line in self.entities(part, e)]  # type: ignore[arg-type]
        patterns, fact = self._membership(e, concepts, bound=bool(sets))
        return [*member_patterns, *patterns], fact

    def _membership(self, e: str, concepts: Node, *, bound: bool) -> tuple[list[str], Fact]:
        """Return patterns of the memberships of a node in some concepts, and their terms.

        For nodes that other patterns give (`bound`), a path leads to the few concepts above each of theirs; Jena would
        follow it from all concepts below for each node.
        """
        first = self.fresh("c")
        if bound and self._dialect.joins_paths:
            top = self.fresh("c")
            member, fact = self.layout.member(e, first, self.fresh)
            return [*self.entities(concepts, top), member, self.layout.superclass_path(first, top)], fact  # type: ignore[arg-type]
        descendants = self._descendants(concepts, first)
        member, fact = self.layout.member(e, first, self.fresh, backward=not bound)
        return [descendants, member], fact

    def _subclasses(self, concepts: Node) -> tuple[list[str], Fact]:
        """Return patterns of the subclasses of some concepts, direct or indirect, and their terms."""
        low, high = self.fresh("c"), self.fresh("c")
        subclass, fact = self.layout.subclass(low, high, self.fresh)
        return [self._descendants(concepts, high), subclass], fact

    def _descendants(self, concepts: Node, first: str) -> str:
        """Return some concepts and all below them.

        If the store follows a path among other patterns from everywhere, this is a list that is fetched first, since
        Virtuoso loses rows joined with a query of just the path. If they are too many for a list it is such a query,
        which other stores join only when it is complete.
        """
        top = self.fresh("c")
        if self._dialect.joins_paths:
            return _joined([*self.entities(concepts, top), self.layout.superclass_path(first, top)])  # type: ignore[arg-type]
        path = self.layout.superclass_path(first, top)
        names = concepts.names if isinstance(concepts, alg.ByName) else concepts.ids if isinstance(concepts, alg.ById) else ()
        if names:
            # Virtuoso does not fully follow a path that ends in one of several alternatives.
            labelled = self._labelled(names, top) if isinstance(concepts, alg.ByName) else ()
            ends = [f"{label} {path}" for label in labelled] + [
                self.layout.superclass_path(first, f"<{iri}>") for iri in self.iris_named(names)
            ]
        else:
            ends = [" ".join([*self.entities(concepts, top), path])]  # type: ignore[arg-type]
        query = f"SELECT DISTINCT {first} WHERE {{ {_one_of(ends)} }}"
        classes = self._classes(names, query) if names else None
        if classes is None:
            return Query(f"{{ {query} }}")
        return Bound(f"VALUES {first} {{ {listed(classes)} }}") if classes else self._nothing(first)

    # -- entities ----------------------------------------------------------------------------------

    def entities(self, node: alg.Entities, e: str, *, bound: bool = False) -> list[str]:
        """Return patterns that hold for each entity of a set, and perhaps for others; `bound` if earlier patterns give
        the variable.
        """
        if isinstance(node, alg.AllEntities):
            return self._all(node, e)
        if isinstance(node, alg.ById):
            iris = [ident for ident in node.ids if is_iri(ident)]
            s, p, o, q = (self.fresh(name) for name in "spop")
            test = " || ".join(f"EXISTS {{ {self._anywhere(triple)} }}" for triple in (f"{e} {p} {o} .", f"{s} {q} {e} ."))
            test = f"FILTER({test})"
            return [Bound(f"VALUES {e} {{ {listed(iris)} }} {test}") if iris else self._nothing(e)]
        if isinstance(node, alg.ByName):
            iris_named = tuple(dict.fromkeys(self.iris_named(node.names)))
            return [_one_of([*self._labelled(node.names, e), *(self.entities(alg.ById(iris_named), e) if iris_named else ())])]
        if isinstance(node, alg.Members):
            return self._membership(e, node.concepts, bound=bound)[0]
        if isinstance(node, alg.Union):
            # As a query of its own: if joined with other patterns, an alternative is tried for each of their rows.
            return [_query([e], [either(_joined(self.entities(part, e)) for part in node.parts) or NEVER])]
        if isinstance(node, alg.Intersect):
            ordered = [part for part in node.parts if not isinstance(part, alg.AllEntities)] or list(node.parts)
            # Jena evaluates what follows for each of the first ones.
            ordered.sort(key=_is_many)
            return [pattern for index, part in enumerate(ordered) for pattern in self.entities(part, e, bound=bound or index > 0)]
        if isinstance(node, alg.Minus):
            return self.entities(node.left, e, bound=bound)
        if isinstance(node, alg.Reached):
            return self._reached(node.facts, e)
        if isinstance(node, alg.ArgExtreme):
            return self._reached(alg.Scan(node.of, (node.key,), family="attribute"), e)
        if isinstance(node, alg.EntitiesOf):
            scope = _Scope()
            patterns = self._rows(node.of, scope)
            return [_chosen(patterns, scope.variables[node.variable], e)] if node.variable in scope.variables else [NEVER]
        raise UnsupportedError(TARGET, [type(node).__name__])

    def _nothing(self, e: str) -> str:
        return f"{e} {self.fresh('p')} {self.fresh('o')} . {NEVER}"

    def _reached(self, facts: alg.Facts, e: str) -> list[str]:
        subject = reach_of(facts) == "subject"
        if any(isinstance(node, alg.FactsOf) for node in postorder(facts)):
            patterns, fact = self.facts(facts)
            return [_chosen(patterns, fact.subject if subject else fact.object, e)]
        return self.facts(facts, subject=e if subject else None, thing=None if subject else e)[0]

    def _all(self, node: alg.AllEntities, e: str) -> list[str]:
        kinds = set(node.kinds)
        if not kinds & {EntityKind.ENTITY, EntityKind.CONCEPT}:
            return [self._nothing(e)]
        parts = self.layout.ends(e, self.fresh)
        member, fact = self.layout.member(e, self.fresh("c"), self.fresh)
        if self.mapping.hidden:
            member += f" FILTER({fact.object} NOT IN ({listed(self.mapping.hidden, ', ')}))"
        parts.append(member)
        if self.mapping.shape == "wikibase":
            # Units and properties are entities only because of their labels.
            parts += [f"{e} <{label}> {self.fresh('l')} ." for label in self.labels]
        if EntityKind.CONCEPT in kinds:
            parts.append(self.layout.member(self.fresh("s"), e, self.fresh)[0])
            parts += [self.layout.subclass(*pair, self.fresh)[0] for pair in ((e, self.fresh("c")), (self.fresh("c"), e))]
        test = f"!isLiteral({e})"
        if self.mapping.shape == "wikibase":
            test += f" && !({is_unknown(e)})"
        return [_query([e], [either(parts), f"FILTER({test})"])]

    def iris_named(self, names: Sequence[str]) -> list[str]:
        """Return the nodes that have one of these names by their IRIs."""
        iris = [name for name in names if is_iri(name)]
        if self.mapping.names == "local":
            iris += [iri for name in names for space in self.mapping.namespaces if is_iri(iri := space + name)]
        return iris

    def _labelled(self, names: Sequence[str], e: str) -> list[Bound]:
        """Return patterns of the nodes with some labels, of which any one may hold."""
        n = self.fresh("n")
        # Stores that keep language tags as written have most regions and scripts in capitals.
        tags = dict.fromkeys(form for tag in self.mapping.languages for form in (tag, _with_capitals(tag)))
        terms = [term for name in names for term in (string(name), *(f"{string(name)}@{tag}" for tag in tags))]
        parts = [Bound(f"VALUES {n} {{ {' '.join(terms)} }} {self._anywhere(f'{e} <{label}> {n} .')}") for label in self.labels]
        if self.mapping.shape == "plain" and any(name in self._predicates for name in names):
            # A predicate with only a label is no entity.
            s, p, p2, o, o2 = (self.fresh(name) for name in "sppoo")
            used = f"EXISTS {{ {self.fresh('s')} {e} {o2} }}"
            is_entity = f"EXISTS {{ {e} {p} {o} . FILTER({p} != <{LABEL}>) }} || EXISTS {{ {s} {p2} {e} }}"
            parts = [Bound(f"{part} FILTER(!{used} || {is_entity})") for part in parts]
        return parts

    # -- statements --------------------------------------------------------------------------------

    def facts(
        self,
        node: Node,
        *,
        subject: str | None = None,
        thing: str | None = None,
        flipped: bool = False,
        backward: bool = False,
    ) -> tuple[list[str], Fact]:
        """Return patterns that hold for each statement, and their terms; `backward` if earlier patterns give the object."""
        if isinstance(node, alg.Scan):
            return self._scan(node, subject or self.fresh("e"), thing or self.fresh("o"), backward=backward)
        if isinstance(node, alg.FactsOf):
            scope = _Scope(node.variable, flipped=flipped)
            patterns = self._rows(node.of, scope)
            fact = scope.facts.get(node.variable)
            if fact is None:
                raise UnsupportedError(TARGET, ["statements of alternatives"], hint="ask for each of them by itself")
            return patterns, fact
        if isinstance(node, alg.Where):
            scan = _scanned(node)
            subject, thing = subject or self.fresh("e"), thing or self.fresh("o")
            tests = self._test(node.condition, thing, node.facts) if scan is not None else []
            # After an entity given by name, given terms come after its statements, which are few: before them, they would be
            # combined with it.
            few = scan is not None and scan.anchor == "subject" and isinstance(scan.of, alg.ById | alg.ByName)
            first_terms = [test for test in tests if isinstance(test, Bound) and not few]
            patterns, fact = self.facts(
                node.facts, subject=subject, thing=thing, flipped=flipped, backward=backward or bool(first_terms)
            )
            if scan is None:
                tests = self._test(node.condition, fact.object, node.facts)
            return [*first_terms, *patterns, *(test for test in tests if test not in first_terms)], fact
        if isinstance(node, alg.WhereQualifier):
            patterns, fact = self.facts(node.facts, subject=subject, thing=thing, flipped=flipped, backward=backward)
            q, key = self.fresh("q"), self._keys.get(node.key)
            qualifier = self.layout.qualified(fact, key, q) if key is not None else ""
            if qualifier and isinstance(node.condition, alg.Among):
                return [*patterns, *self.entities(node.condition.entities, q), qualifier], fact
            return [*patterns, qualifier] if qualifier else patterns, fact
        if isinstance(node, (alg.During, alg.WhereValidity, alg.OtherEnd, alg.DuringAny)):
            return self.facts(node.facts, subject=subject, thing=thing, flipped=flipped, backward=backward)
        raise UnsupportedError(TARGET, [type(node).__name__])

    def iris(self, names: tuple[str, ...] | None) -> list[str] | None:
        """Return predicates by their names; an unknown name gives none."""
        return None if names is None else [self._predicates[name].iri for name in names if name in self._predicates]

    def _scan(self, node: alg.Scan, s: str, o: str, *, backward: bool = False) -> tuple[list[str], Fact]:
        predicates = self.iris(node.predicates)
        patterns = []
        if node.of is not None and not isinstance(node.of, alg.AllEntities):
            patterns = self.entities(node.of, s if node.anchor == "subject" else o)
        if predicates == []:
            return [*patterns, NEVER], Fact(s, self.fresh("p"), o, self.fresh("f"))
        backward = node.anchor == "object" if patterns else backward
        pattern, fact = self.layout.statement(s, predicates, o, self.fresh, backward=backward)
        relation = node.family == "relation" or node.anchor == "object" or node.reach == "object"
        mixed = predicates is None or any(
            predicate.values for predicate in map(self._predicates.__getitem__, node.predicates or ())
        )
        limit = [f"FILTER(!isLiteral({o}))"] if relation and mixed and node.reach != "subject" else []
        return [*patterns, pattern, *limit], fact

    def _predicates_of(self, facts: Node | None) -> list[Predicate] | None:
        """Return the predicates of statements, if everything that they lead to is known."""
        scan = _scanned(facts)
        if scan is None or scan.predicates is None:
            return None
        predicates_by_name = self._predicates if self.mapping.whole else self._counted
        predicates = [predicates_by_name[name] for name in scan.predicates if name in predicates_by_name]
        return predicates if self.mapping.whole or len(predicates) == len(scan.predicates) else None

    def _values(self, facts: Node | None) -> set[Kind] | None:
        """Return the kinds of the statements' objects, or None if unknown."""
        scan, predicates = _scanned(facts), self._predicates_of(facts)
        if scan is not None and scan.family == "relation":
            return {Kind.ENTITY}
        if predicates is None:
            return None
        kinds = {kind for predicate in predicates for kind, _ in predicate.values} | {
            Kind.ENTITY for predicate in predicates if predicate.relations
        }
        return kinds - {Kind.UNKNOWN}

    def _text_endings(self, facts: Node | None) -> list[str] | None:
        """Return what follows the characters of the objects, if these are texts: `@en` for each language, "" for none.

        It is None if that is unknown, or if white space of some texts is folded.
        """
        scan, mapping = _scanned(facts), self.mapping
        # Some of their statements are written with other predicates.
        spread = mapping.statements or mapping.infer
        if scan is None or scan.predicates is None or scan.family == "relation" or spread:
            return None
        predicates = [self._predicates[name] for name in scan.predicates if name in self._predicates]
        if len(predicates) > 1 and not mapping.whole:
            return None
        ends: set[str] = set()
        for predicate in predicates:
            tags = predicate.languages if mapping.whole else self._languages(self.layout.value_predicate(predicate.iri))
            if tags is None or (
                mapping.whole and (predicate.relations or {kind for kind, _ in predicate.values} - {Kind.UNKNOWN} != {Kind.TEXT})
            ):
                return None
            ends |= {f"@{tag}" if tag else "" for tag in tags}
        return sorted(ends) if 0 < len(ends) <= _MAX_LANGUAGES else None

    def _in_units(self, tests: Sequence[alg.Condition], o: str, facts: Node | None) -> list[str]:
        """Return a comparison of numbers with a quantity, in any of the units that they have.

        Fetching all numbers is faster for a store than alternatives by unit. It is empty if the units are unknown, or if some
        numbers cannot be compared, which a warning counts.
        """
        bounds = {
            item.value.unit: item.value for item in tests if isinstance(item, alg.Compare) and isinstance(item.value, Quantity)
        }
        operators = {item.operator for item in tests if isinstance(item, alg.Compare)}
        scan = _scanned(facts)
        if len(bounds) < len(tests) or len(operators) > 1 or "!=" in operators:
            return []
        if self.mapping.shape == "plain":
            return _number(operators, bounds.values(), o) if len(bounds) == 1 else []
        if not self.mapping.whole and scan is not None and isinstance(scan.of, alg.AllEntities | alg.Members | None):
            # For the numbers of a few entities, a look at all numbers costs too much.
            for item in map(self._predicates.get, scan.predicates or ()):
                if item is not None and (counted := self._numbers(item)) is not None:
                    self._counted[item.name] = counted
        predicates = self._predicates_of(facts)
        kinds = {key for item in predicates or () for key in item.values if key[0] not in (Kind.TEXT, Kind.UNKNOWN)}
        if predicates is None or not kinds <= {(Kind.QUANTITY, unit) for unit in bounds}:
            return []
        return _number(operators, [bounds[unit] for unit in sorted(unit for _, unit in kinds)], o)

    def _test(self, test: alg.Condition, o: str, facts: Node | None) -> list[str]:
        """Return a filter that everything passes that satisfies a test or cannot be compared, as far as an endpoint can tell."""
        if isinstance(test, alg.Among):
            return self.entities(test.entities, o, bound=True)
        if isinstance(test, alg.AllOf):
            return [line for part in test.conditions for line in self._test(part, o, facts)]
        if isinstance(test, alg.AnyOf):
            return self._in_units(test.conditions, o, facts)
        if not isinstance(test, alg.Compare) or test.operator == "!=":
            return []
        value = test.value
        if isinstance(value, Quantity):
            return self._in_units([test], o, facts)
        if isinstance(value, Time):
            return _year(test.operator, value, o, self._dialect)
        if isinstance(value, str) and test.operator == "=":
            if (written := self._text_endings(facts)) is not None:
                return [Bound(f"VALUES {o} {{ {' '.join(string(value) + end for end in written)} }}")]
            word = max(value.split(), key=len, default="")
            if not word:
                return []
            if self._values(facts) == {Kind.TEXT}:
                return [f"FILTER(CONTAINS(STR({o}), {string(word)}))"]
            # A node matches by its name, and a warning counts what cannot be compared.
            return [f"FILTER(COALESCE(!({is_text(o)}) || CONTAINS(STR({o}), {string(word)}), true))"]
        return []

    # -- rows --------------------------------------------------------------------------------------

    def _rows(self, node: Solutions, scope: _Scope) -> list[str]:
        if isinstance(node, alg.Pattern):
            return self._pattern(node, scope)
        if isinstance(node, alg.Join):
            return [*self._rows(node.left, scope), *self._rows(node.right, scope)]
        if isinstance(node, alg.EntityRows):
            return self.entities(node.entities, scope.variable(node.variable, self.fresh))
        if isinstance(node, alg.Rows):
            return self._constant_rows(node, scope)
        if isinstance(node, alg.Project):
            inner = _Scope(scope.wanted, flipped=scope.flipped)
            inner.variables = {old: scope.variable(new, self.fresh) for new, old in node.names}
            inner.facts = scope.facts
            return self._rows(node.of, inner)
        if isinstance(node, alg.DistinctRows):
            return self._rows(node.of, scope)
        if isinstance(node, alg.UnionAll):
            for name in node.variables:
                scope.variable(name, self.fresh)
            parts = []
            for part in node.parts:
                inner = _Scope(scope.wanted, flipped=scope.flipped)
                inner.variables = scope.variables
                parts.append(_joined(self._rows(part, inner)))
            return [either(parts)]
        raise UnsupportedError(TARGET, [type(node).__name__])

    def _constant_rows(self, node: alg.Rows, scope: _Scope) -> list[str]:
        patterns = []
        for index, name in enumerate(node.names):
            column = [row[index] for row in node.rows]
            if column and all(isinstance(term, Ref) and is_iri(term.id) for term in column):
                patterns.append(f"VALUES {scope.variable(name, self.fresh)} {{ {listed(term.id for term in column)} }}")  # type: ignore[union-attr]
        return patterns

    def _pattern(self, node: alg.Pattern, scope: _Scope) -> list[str]:
        shape, patterns = shapes_of(node)[id(node)], list[str]()

        def place(term: Any, *, entity: bool) -> str:
            if isinstance(term, alg.Variable):
                # Equal values may be written differently, so only nodes join.
                if entity or shape[term.name].sort == "entity":
                    return scope.variable(term.name, self.fresh)
                variable = self.fresh("o")
                return scope.variables.setdefault(term.name, variable) if term.name not in scope.variables else variable
            variable = self.fresh("e")
            if isinstance(term, alg.Entities):
                patterns.extend(self.entities(term, variable))
            return variable

        for part in node.statements:
            begins, ends = (
                isinstance(term, alg.Entities) or (isinstance(term, alg.Variable) and term.name in scope.variables)
                for term in (part.subject, part.object)
            )
            s, o = place(part.subject, entity=True), place(part.object, entity=part.undirected)
            predicates = self.iris(part.predicate) if isinstance(part.predicate, tuple) else None
            name = part.statement.name if part.statement is not None else ""
            if predicates == []:
                patterns.append(NEVER)
                scope.facts[name] = Fact(s, self.fresh("p"), o, self.fresh("f"))
                continue
            if part.undirected and scope.flipped and scope.wanted == name:
                s, o = o, s
            pattern, fact = self.layout.statement(s, predicates, o, self.fresh, backward=ends and not begins)
            if part.undirected and scope.wanted != name:
                back, _ = self.layout.statement(o, predicates, s, self.fresh)
                pattern = f"{{ {pattern} }} UNION {{ {back} }}"
            patterns.append(pattern)
            if part.condition is not None:
                patterns += self._test(part.condition, o, None)
            if part.family == "relation" and not part.undirected:
                patterns.append(f"FILTER(!isLiteral({o}))")
            for item in part.qualifiers:
                key = self._keys.get(item.key) if isinstance(item.key, str) else None
                value = place(item.value, entity=False) if isinstance(item.value, alg.Variable) else self.fresh("q")
                if key is not None:
                    patterns.append(self.layout.qualified(fact, key, value))
            scope.facts[name] = fact
        for member in node.memberships:
            e, c = place(member.member, entity=True), place(member.concept, entity=True)
            first = self.fresh("c")
            patterns += [self.layout.member(e, first, self.fresh)[0], self.layout.superclass_path(first, c)]
        return patterns


class _Scope:
    """The variables of rows and the terms of their statements, by their names in the plan.

    `wanted` is the statement whose terms are needed; if it matches in either direction, `flipped` tells in which.
    """

    def __init__(self, wanted: str = "", *, flipped: bool = False) -> None:
        self.variables: dict[str, str] = {}
        self.facts: dict[str, Fact] = {}
        self.wanted, self.flipped = wanted, flipped

    def variable(self, name: str, fresh: Fresh) -> str:
        """Return the variable of a name."""
        if name not in self.variables:
            self.variables[name] = fresh("r")
        return self.variables[name]


def _undirected(node: Node) -> bool:
    """Tell whether some statement of a pattern matches in either direction."""
    return any(
        isinstance(pattern, alg.Pattern) and any(part.undirected for part in pattern.statements) for pattern in postorder(node)
    )


def _scanned(facts: Node | None) -> alg.Scan | None:
    """Return the scan that some statements come from."""
    while isinstance(facts, alg.Facts) and (inner := alg.passed(facts)) is not None:
        facts = inner
    return facts if isinstance(facts, alg.Scan) else None


def _has_nodes(predicate: Predicate) -> bool:
    """Tell whether value nodes have more about a predicate's values than the look. See `Fetcher.in_units`."""
    kinds = {kind for kind, _ in predicate.values}
    return Kind.TIME in kinds or (Kind.QUANTITY in kinds and not predicate.unit)


def _is_many(node: Node) -> bool:
    """Tell whether a set starts from a class, or from all with a property, rather than from what the plan names."""
    if isinstance(node, alg.Reached):
        scan, test = _scanned(node.facts), node.facts
        if isinstance(test, alg.Where) and isinstance(test.condition, alg.Compare) and isinstance(test.condition.value, str):
            return test.condition.operator != "="
        return scan is None or scan.of is None or _is_many(scan.of)
    if isinstance(node, alg.Intersect | alg.Union):
        return (all if isinstance(node, alg.Intersect) else any)(map(_is_many, node.parts))
    return _is_many(node.left) if isinstance(node, alg.Minus) else not isinstance(node, alg.ById | alg.ByName)


def _is_named(facts: alg.Facts) -> bool:
    """Tell whether the objects are named in the plan, so that a unit of their own fetches them."""
    scan = _scanned(facts)
    return scan is not None and scan.anchor == "object" and isinstance(scan.of, alg.ByName)


def reach_of(node: Node) -> alg.End:
    """Return the end that statements reach."""
    while not isinstance(node, (alg.Scan, alg.OtherEnd, alg.FactsOf)):
        node = node.inputs()[0]
    return node.reach


def _joined(patterns: Iterable[str], between: str = " ") -> str:
    parts = [part for part in patterns if part]
    return (Query if any(isinstance(part, Query) for part in parts) else str)(between.join(parts))


def _query(chosen: Iterable[str], patterns: Iterable[str]) -> Query:
    return Query(f"{{ SELECT DISTINCT {' '.join(chosen)} WHERE {{ {_joined(patterns)} }} }}")


def _chosen(patterns: Iterable[str], v: str, e: str) -> Query:
    """Return the bindings of a variable, under another name."""
    return _query([f"({v} AS {e})"], [*patterns, f"FILTER(!isLiteral({v}))"])


def _with_capitals(tag: str) -> str:
    """Return a language tag as it is usually written: `en-GB`, `zh-Hant`."""
    language, *subtags = tag.split("-")
    return "-".join([language, *(part.upper() if len(part) == 2 else part.title() if len(part) == 4 else part for part in subtags)])


def _one_of(patterns: Iterable[str]) -> str:
    parts = list(patterns)
    return parts[0] if len(parts) == 1 else either(parts)


def either(patterns: Iterable[str]) -> str:
    """Return alternatives."""
    return _joined((type(part)(f"{{ {part} }}") for part in patterns), " UNION ")


def _number(operators: Iterable[str], bounds: Iterable[Quantity], o: str) -> list[str]:
    """Return a filter for numbers on one side of some bound, with a margin for stores that compare doubles; others pass."""
    tests = []
    for operator in operators:
        for bound in bounds:
            number = Decimal(format_number(bound.number))
            margin = abs(number) * Decimal("1e-9") + Decimal("1e-9")
            low, high = (f'"{format_number(end)}"^^<{XSD}decimal>' for end in (number - margin, number + margin))
            side = {"<": f"{o} <= {high}", ">": f"{o} >= {low}"}
            tests.append(side.get(operator[0], f"({side['<']} && {side['>']})"))
    return [f"FILTER(COALESCE(!isNumeric({o}) || {' || '.join(tests)}, true))"] if tests else []


def _year(operator: str, value: Time, o: str, dialect: Dialect) -> list[str]:
    """Return a filter for times up to, or from, a year; others pass, and those whose year a store cannot tell."""
    if value.start <= OPEN_START or value.end >= OPEN_END:
        return []
    first, last = civil(value.start // DAY_SECONDS)[0] - 1, civil((value.end - 1) // DAY_SECONDS)[0] + 1
    if dialect.years:
        year, low, high = f"YEAR({o})", str(first), str(last)
    elif first > 0 and last < 10_000:
        year, low, high = f"SUBSTR(STR({o}), 1, 4)", f'"{first:04d}"', f'"{last:04d}"'
    else:
        return []
    test = {
        "=": f"{year} >= {low} && {year} <= {high}",
        "<": f"{year} <= {high}",
        "<=": f"{year} <= {high}",
        ">": f"{year} >= {low}",
        ">=": f"{year} >= {low}",
    }[operator]
    if dialect.years:
        return [f"FILTER(COALESCE(!isLiteral({o}) || ({test}), true))"]
    return [f'FILTER(!REGEX(STR({o}), "^[0-9]{{4}}(-|$)") || ({test}))']


#: Operators that read only the ends of statements and the qualifiers that they name.
_BARE: Final = (
    *(alg.AllEntities, alg.ById, alg.ByName, alg.Members, alg.Union, alg.Intersect, alg.Minus, alg.Reached, alg.ArgExtreme),
    *(alg.Scan, alg.Where, alg.WhereQualifier, alg.OtherEnd, alg.Objects, alg.Qualifiers, alg.Predicates, alg.Names),
    *(alg.Distinct, alg.Count, alg.AnySatisfies),
)
_TESTING: Final = (alg.Where, alg.WhereQualifier, alg.AnySatisfies)


class _Reads(NamedTuple):
    """What an answer reads of statements: qualifiers, and whether it reads the names of objects and of qualifiers' values."""

    keys: tuple[str, ...]
    names: bool


def _is_bare(node: Node) -> bool:
    """Tell whether an operator reads no more than `_Reads` has."""
    if isinstance(node, _TESTING) and not all(
        isinstance(part, alg.Compare | alg.AllOf | alg.AnyOf | alg.Among) for part in _parts(node.condition)
    ):
        return False
    if isinstance(node, alg.Qualifiers) and node.key is None:
        return False
    return isinstance(node, _BARE) and getattr(node, "source", None) is None


def _parts(condition: alg.Condition) -> Iterator[alg.Condition]:
    yield condition
    for part in condition.parts():
        yield from _parts(part)


def _compares_text(node: Node) -> bool:
    """Tell whether an operator, or another one on the same statements, compares with a text, which can be an entity's name."""
    tests = isinstance(node, _TESTING) and any(
        isinstance(part, alg.Compare) and isinstance(part.value, str) for part in _parts(node.condition)
    )
    inner = alg.passed(node) if isinstance(node, alg.Facts) else None
    return tests or (inner is not None and _compares_text(inner))


_SUPPORTED: Final = (
    *(alg.AllEntities, alg.ById, alg.ByName, alg.Members, alg.Union, alg.Intersect, alg.Minus, alg.Reached, alg.ArgExtreme),
    *(alg.EntitiesOf, alg.Scan, alg.Where, alg.WhereQualifier, alg.During, alg.WhereValidity, alg.OtherEnd, alg.FactsOf),
    *(alg.Pattern, alg.Join, alg.EntityRows, alg.Rows, alg.Project, alg.DistinctRows, alg.UnionAll),
)


def beyond(order: Iterable[Node]) -> set[int]:
    """Return the operators of a plan (by identity), inputs first, that are not patterns or that take one that is none."""
    non_patterns: set[int] = set()
    for node in order:
        if (
            not isinstance(node, _SUPPORTED)
            or any(id(child) in non_patterns for child in node.inputs())
            or (isinstance(node, Solutions) and id(node) not in shapes_of(node))
        ):
            non_patterns.add(id(node))
    return non_patterns


def fetched(plan: Node) -> list[Unit]:
    """Return what must be fetched for a plan."""
    return units(plan, beyond(postorder(plan)))
