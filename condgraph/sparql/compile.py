"""A plan as one SPARQL 1.1 query: entities and facts as graph patterns.

Each operator answers for itself (`compile_table`): it is said by a few patterns over `?e` (an entity) or over subject, predicate,
object and statement of a fact. Sets need no more than that: a pattern is existential, and what is selected in the end is DISTINCT.
A fact is the direct triple `<subject> <predicate> <object>` where that is enough, and its statement node where something hangs on
it: qualifiers, validity, a source.

Only what KQA Pro's layout asks for beyond that: a qualifier's triple looks like the triple of a fact whose subject is a statement,
so an entity that nothing else makes an entity is `loose` and gets a name before it is given on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node
from condgraph.engine.errors import UnknownNameError, UnsupportedError, nearest
from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME, Entity, EntityKind
from condgraph.engine.values import UNKNOWN_END, UNKNOWN_START, Kind
from condgraph.sparql.compile_tests import Objects, during_filter, test_patterns
from condgraph.sparql.layout import ENTITY_CLASSES, TYPE, VALUE, Names, integer, pred, string

TARGET: Final = "SPARQL"
#: A plan whose shared parts would be written out to more patterns than this is refused.
MOST_PATTERNS: Final = 20_000
#: Characters of a group up to which it is written out into the branches of its unions.
LONGEST_TEXT: Final = 20_000
Kinds = Mapping[tuple[Kind, str], int]


class Known(Protocol):
    """What compiling may know of a graph: its schema, never its facts."""

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of all sources."""

    def has_relation(self, name: str) -> bool:
        """Some statement with this predicate has an entity as object."""

    def has_attribute(self, name: str) -> bool:
        """Some statement with this predicate has a value as object."""

    def attribute_kinds(self, name: str) -> Kinds:
        """The types and units of an attribute's values."""

    def qualifier_kinds(self, key: str, predicate: str | None = None) -> Kinds:
        """The types and units of a qualifier's values."""


@dataclass(frozen=True, slots=True)
class Target:
    """The graph a plan is compiled for: its names, its schema, and what it holds how many of (`write.counts`)."""

    names: Names
    schema: Known
    counts: Mapping[str, int]
    #: Gives entities by their ids, where the graph is in this process too: then names need no looking up, and rows are read no
    #: further than wanted.
    entities: Callable[[list[str]], list[Entity]] | None = None

    @property
    def local(self) -> bool:
        """Whether the graph is in this process too."""
        return self.entities is not None


class Group(list[str]):
    """The patterns of one group.

    Stores go on from patterns, and not from what a UNION gave or a difference left. So what is taken away comes last, and the rest
    of a group goes into the branches of its union; where that would write too much, the union is a sub-select.
    """

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        super().__init__(patterns)
        self.minus: list[str] = []
        self.unions: list[tuple[str, list[Group]]] = []
        #: Whether the unions stand as they are: what follows them is found without them as well.
        self.apart = False

    def text(self) -> str:
        """All patterns, for between braces."""
        if self.apart and self.unions:
            unions = [" UNION ".join(f"{{ {branch.text()} }}" for branch in branches) for _, branches in self.unions]
            return " ".join((*(f"{{ {union} }}" for union in unions), *self, *self.minus))
        whole = self._spread(LONGEST_TEXT)
        return whole if whole is not None and len(whole) <= LONGEST_TEXT else self._selected()

    def _selected(self) -> str:
        unions = [
            f"{{ SELECT DISTINCT {e} WHERE {{ {' UNION '.join(f'{{ {branch._selected()} }}' for branch in branches)} }} }}"
            for e, branches in self.unions
        ]
        return " ".join((*unions, *self, *self.minus))

    def _spread(self, most: int) -> str | None:
        """The text with the unions spread over the rest; None where it is longer, or a sub-select would be evaluated twice."""
        if not self.unions:
            return " ".join((*self, *self.minus))
        if sum(map(len, self)) > most or any("SELECT" in pattern for pattern in self):
            return None
        (_, branches), *others = self.unions
        texts = []
        for branch in branches:
            joined = Group((*branch, *self))
            joined.minus = [*branch.minus, *self.minus]
            joined.unions = [*branch.unions, *others]
            text = joined._spread(most)
            if text is None:
                return None
            texts.append(f"{{ {text} }}")
            most -= len(text)
            if most < 0:
                return None
        return " UNION ".join(texts)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of facts: whether their statement is bound, and the variables that subject and object are to have."""

    whole: bool = False
    subject: str | None = None
    object: str | None = None
    #: The set that the object lies in, which is said before the fact.
    among: alg.Entities | None = None


@dataclass(slots=True)
class FactRows:
    """Variables (or IRIs) of the facts that patterns leave. `statement` is None where only the direct triple stands there."""

    subject: str
    predicate: str
    object: str
    statement: str | None
    reached: str
    #: What the objects are, as far as it is known.
    objects: Objects
    loose: bool = False
    #: Patterns that bind the statement, to be said once the tests on its object are.
    bind: list[str] = field(default_factory=list)


class Compiler:
    """Writes patterns. Variables are numbered in the order they come, so that equal plans give equal texts."""

    def __init__(self, target: Target) -> None:
        self.target, self.iris, self.schema, self.counts = target, target.names, target.schema, target.counts
        #: Whether the client leaves out predicates of the vocabulary.
        self.client_filters = False
        self._variables = 0
        self._patterns = 0

    def variable(self, prefix: str) -> str:
        """A fresh variable."""
        self._variables += 1
        return f"?{prefix}{self._variables}"

    @staticmethod
    def group() -> Group:
        """A group without patterns."""
        return Group()

    # -- entities ---------------------------------------------------------------------------------------------------------

    def entities(self, node: Node, e: str, out: Group) -> bool:
        """Patterns that bind `e` to each entity of a set, some more than once; whether `e` is still loose."""
        self._patterns += 1
        if self._patterns > MOST_PATTERNS:
            raise UnsupportedError(TARGET, [f"a program of more than {MOST_PATTERNS} patterns"])
        return ENTITIES[type(node)](self, node, e, out)

    def settled(self, node: Node, e: str, out: Group) -> None:
        """The same, and `e` is an entity for sure."""
        if self.entities(node, e, out):
            self.settle(e, out)

    def settle(self, e: str, out: Group) -> None:
        """Make sure that a loose variable is an entity: statements have no names."""
        out.append(f"{e} <pred:name> {self.variable('n')} .")

    def every(self, node: alg.Every, e: str, out: Group) -> bool:
        """All entities of the kinds; of one source those that are rows of it or stand in its statements."""
        kinds = tuple(dict.fromkeys(node.kinds))
        if node.source is not None:
            f, source = self.variable("f"), self.source(node.source)
            part = " UNION ".join(f"{{ {f} <pred:source> {source} . {f} <pred:{end}> {e} . }}" for end in ("fact_h", "fact_t"))
            out.append(f"{{ {part} UNION {{ {e} <pred:source> {source} . {e} {TYPE} <pred:Row> . }} }}")
        if not self.counts.get("rows", 1):
            kinds = tuple(kind for kind in kinds if kind is not EntityKind.ROW) or kinds
        classes = [pred(ENTITY_CLASSES[kind]) for kind in kinds]
        if len(classes) == 1:
            out.append(f"{e} {TYPE} {classes[0]} .")
        else:
            kind = self.variable("k")
            out.append(f"VALUES {kind} {{ {' '.join(classes)} }} {e} {TYPE} {kind} .")
        return False

    def named(self, node: alg.Named, e: str, out: Group) -> bool:
        """Entities by exact name."""
        if len(node.names) == 1:
            out.append(f"{e} <pred:name> {string(node.names[0])} .")
        else:
            name = self.variable("n")
            out.append(f"VALUES {name} {{ {' '.join(map(string, node.names))} }} {e} <pred:name> {name} .")
        return False

    def known(self, node: alg.Known, e: str, out: Group) -> bool:
        """Entities by id."""
        out.append(f"VALUES {e} {{ {' '.join(map(self.iris.entity, node.ids))} }} {e} <pred:name> {self.variable('n')} .")
        return False

    def members(self, node: alg.Members, e: str, out: Group) -> bool:
        """Entities in any of the concepts: membership is stored closed."""
        c = self.variable("c")
        out.append(f"{e} <pred:instance_of> {c} .")
        self.entities(node.concepts, c, out)
        return False

    def union(self, node: alg.Union, e: str, out: Group) -> bool:
        """Entities in any part."""
        branches, loose = [], False
        for part in node.parts:
            branches.append(Group())
            loose |= self.entities(part, e, branches[-1])
        out.unions.append((e, branches))
        return loose

    def intersect(self, node: alg.Intersect, e: str, out: Group) -> bool:
        """Entities in all parts: all patterns hold."""
        loose = True
        for part in node.parts:
            loose &= self.entities(part, e, out)
        return loose

    def minus(self, node: alg.Minus, e: str, out: Group) -> bool:
        """Entities of the left that are not in the right."""
        loose = self.entities(node.left, e, out)
        inner = Group()
        self.entities(node.right, e, inner)
        out.minus.append(f"MINUS {{ SELECT DISTINCT {e} WHERE {{ {inner.text()} }} }}")
        return loose

    def reached(self, node: alg.Reached, e: str, out: Group) -> bool:
        """The ends of the facts."""
        return self.facts(node.facts, out, reached=e).loose

    def namesakes(self, node: alg.Namesakes, e: str, out: Group) -> bool:
        """All entities of the same names."""
        of, name = self.variable("e"), self.variable("n")
        self.entities(node.of, of, out)
        out.append(f"{of} <pred:name> {name} . {e} <pred:name> {name} .")
        return False

    def neighbour(self, node: alg.Neighbour, e: str, out: Group) -> bool:
        """The rows at a distance in their source."""
        of, source, place, other = (self.variable(prefix) for prefix in ("e", "s", "n", "n"))
        self.entities(node.of, of, out)
        out.append(
            f"{of} {TYPE} <pred:Row> . {of} <pred:source> {source} . {of} <pred:position> {place} . {e} <pred:source> {source} . "
            f"{e} <pred:position> {other} . FILTER({other} = {place} + {integer(node.distance)})"
        )
        return False

    def best(self, node: alg.Best, e: str, out: Group) -> bool:
        """The entities with the best value of a key, all ties; the most frequent type and unit compete."""
        groups = {group: n for group, n in self.schema.attribute_kinds(node.key).items() if group[0] in (Kind.QUANTITY, Kind.TIME)}
        if not groups:
            out.append(f"{e} <pred:name> {self.variable('n')} . FILTER(false)")
            return False
        largest = node.direction == "largest"
        scan = alg.Scan(node.of, (node.key,), family="attribute")
        if len(groups) == 1:
            (kind, _), *_ = groups
            term = ("end" if largest else "start") if kind is Kind.TIME else ("order" if self.counts.get("inexact") else "value")
            best, condition = self._extreme(scan, term, largest, kind, len(self.schema.attribute_kinds(node.key)) > 1)
            out.append(f"{{ {best[1]} }}")
            rows = self.facts(scan, out, reached=e)
            if term == "order":
                x = self.variable("x")
                out.append(f"{rows.object} <pred:order> {x} . FILTER(STR({x}) = {best[0]}){condition(rows.object)}")
            else:
                out.append(f"{rows.object} <pred:{term}> {best[0]} .{condition(rows.object)}")
            return rows.loose
        return self._contest(node, scan, largest, e, out)

    def ordered(self, node: alg.Best) -> str | None:
        """A query of the entities with their values of the key, the best first; None where several types or units may compete."""
        kinds = self.schema.attribute_kinds(node.key)
        groups = [group for group in kinds if group[0] in (Kind.QUANTITY, Kind.TIME)]
        if len(groups) != 1:
            return None
        largest = node.direction == "largest"
        term = "order" if self.counts.get("inexact") else "value"
        if groups[0][0] is Kind.TIME:
            term = "end" if largest else "start"
        out = Group()
        rows = self.facts(alg.Scan(node.of, (node.key,), family="attribute"), out, reached="?e")
        if rows.loose:
            self.settle("?e", out)
        out.append(f"{rows.object} <pred:{term}> ?x .")
        if len(kinds) > 1:
            out.append(f"{rows.object} {TYPE} {pred('Time' if groups[0][0] is Kind.TIME else 'Quantity')} .")
        return f"SELECT ?e ?x WHERE {{ {out.text()} }} ORDER BY {'DESC(?x)' if largest else '?x'}"

    def _extreme(
        self, scan: alg.Scan, term: str, largest: bool, kind: Kind, mixed: bool
    ) -> tuple[tuple[str, str], Callable[[str], str]]:
        """A sub-select of the best value among one type: its variable and text, and what makes sure of the type."""

        def condition(v: str) -> str:
            return f" {v} {TYPE} {pred('Time' if kind is Kind.TIME else 'Quantity')} ." if mixed else ""

        inner = Group()
        rows = self.facts(scan, inner)
        if rows.loose:
            self.settle(rows.reached, inner)
        x, best = self.variable("x"), self.variable("best")
        inner.append(f"{rows.object} <pred:{term}> {x} .{condition(rows.object)}")
        # Virtuoso sorts long texts by when they were loaded, unless they are made new.
        of = f"STR({x})" if term == "order" else x
        text = f"SELECT ({'MAX' if largest else 'MIN'}({of}) AS {best}) WHERE {{ {inner.text()} }}"
        return (best, text), condition

    def _contest(self, node: alg.Best, scan: alg.Scan, largest: bool, e: str, out: Group) -> bool:
        """Several types and units: a sub-select finds the most frequent (ties: times, then units by name), the next the best of it.

        A value's type and unit are one text, so that each sub-select binds what the next one looks for.
        """
        number = "order" if self.counts.get("inexact") else "value"
        edge = "end" if largest else "start"

        def grouped(v: str, group: str, key: str) -> str:
            unit = self.variable("u")
            return (
                f'{{ {v} <pred:unit> {unit} . {v} <pred:{number}> {key} . BIND(CONCAT("1", {unit}) AS {group}) }} UNION '
                f'{{ {v} <pred:{edge}> {key} . BIND("0" AS {group}) }}'
            )

        winner, best = self.variable("g"), self.variable("best")
        count = self.variable("times")
        inner = Group()
        rows = self.facts(scan, inner, whole=True)
        group, key = self.variable("g"), self.variable("x")
        inner.append(grouped(rows.object, group, key))
        most = (
            f"SELECT ({group} AS {winner}) (COUNT(DISTINCT {rows.statement}) AS {count}) WHERE {{ {inner.text()} }} "
            f"GROUP BY {group} ORDER BY DESC({count}) {group} LIMIT 1"
        )
        inner = Group([f"{{ {most} }}"])
        rows = self.facts(scan, inner)
        if rows.loose:
            self.settle(rows.reached, inner)
        group, key = self.variable("g"), self.variable("x")
        inner.append(f"{grouped(rows.object, group, key)} FILTER({group} = {winner})")
        choose = "MAX" if largest else "MIN"
        of = f'IF({group} = "0", {key}, STR({key}))' if number == "order" else key
        out.append(f"{{ SELECT {winner} ({choose}({of}) AS {best}) WHERE {{ {inner.text()} }} GROUP BY {winner} }}")
        rows = self.facts(scan, out, reached=e)
        group, key = self.variable("g"), self.variable("x")
        same = f"STR({key}) = STR({best})" if number == "order" else f"{key} = {best}"
        out.append(f"{grouped(rows.object, group, key)} FILTER({group} = {winner} && {same})")
        return rows.loose

    def source(self, name: str) -> str:
        """The node of a source; an unknown one is an error."""
        if name not in self.schema.sources:
            raise UnknownNameError("source", name, candidates=nearest(name, self.schema.sources))
        return self.iris.source(name)

    # -- facts ------------------------------------------------------------------------------------------------------------

    def facts(self, node: Node, out: Group, *, whole: bool = False, reached: str | None = None) -> FactRows:
        """Patterns of facts. `whole` binds the statement; `reached` is the variable that the reached end is to have."""
        subject, thing = (reached, None) if reach_of(node) == "subject" else (None, reached)
        return self.bound(node, out, Wanted(whole, subject, thing))

    def bound(self, node: Node, out: Group, wanted: Wanted) -> FactRows:
        """The facts, and their statement bound where it is wanted."""
        rows = self.wanted(node, out, wanted)
        out.extend(rows.bind)
        rows.bind.clear()
        return rows

    def wanted(self, node: Node, out: Group, wanted: Wanted) -> FactRows:
        """The same, for operators that hand on what is asked of them."""
        return FACTS[type(node)](self, node, out, wanted)

    def scan(self, node: alg.Scan, out: Group, wanted: Wanted) -> FactRows:
        """The statements of a scan."""
        subject = wanted.subject or self.variable("e")
        thing = wanted.object or self.variable("e" if node.family == "relation" else "v")
        target = subject if node.reach == "subject" else thing
        anchor = subject if node.anchor == "subject" else thing
        objects = self._objects(node)
        of = node.of
        whole = wanted.whole or node.source is not None or (node.predicates is None and (of is None or self._all(of)))
        loose = True
        if of is not None and not self._skip(of, node):
            loose = self.entities(of, anchor, out)
        if wanted.among is not None:
            self.entities(wanted.among, thing, out)
        statement, predicate = None, self._predicate(node, out)
        if whole:
            statement = self.variable("f")
            if not predicate.startswith("?"):
                # The direct triple says nothing new, and is where most stores begin.
                out.append(f"{subject} {predicate} {thing} .")
            if not self._every_object_fits(node, objects):
                out.append(self._of_sort(thing, objects))
            rows = FactRows(subject, predicate, thing, statement, target, objects)
            rows.bind.append(f"{statement} <pred:fact_h> {subject} . {statement} <pred:fact_r> {predicate} .")
            rows.bind.append(f"{statement} <pred:fact_t> {thing} .")
            if node.source is not None:
                rows.bind.append(f"{statement} <pred:source> {self.source(node.source)} .")
            return rows
        out.append(f"{subject} {predicate} {thing} .")
        # Any predicate: a store that does not go on from the union begins at the other end.
        out.apart |= node.predicates is None
        if node.predicates is None and not self.client_filters:
            out.append(f'FILTER(STRSTARTS(STR({predicate}), "{self.iris.base}"))')
        if not self._every_object_fits(node, objects):
            out.append(self._of_sort(thing, objects))
        # The subject may be a statement, where the predicate is a qualifier key as well.
        doubtful = (loose or node.anchor == "object") and self._may_be_key(node)
        if doubtful and node.reach == "object":
            self.settle(subject, out)
            doubtful = False
        return FactRows(subject, predicate, thing, None, target, objects, loose=doubtful)

    def _objects(self, node: alg.Scan) -> Objects:
        """What the objects are: what the scan asks for, or what the predicate is known to have."""
        if node.family == "relation" or node.anchor == "object" or node.reach == "object":
            return "entity"
        if node.family == "attribute":
            return "value"
        if node.predicates is not None:
            relation = any(map(self.schema.has_relation, node.predicates))
            attribute = any(map(self.schema.has_attribute, node.predicates))
            if relation != attribute:
                return "entity" if relation else "value"
        return "any"

    def _every_object_fits(self, node: alg.Scan, objects: Objects) -> bool:
        """Whether the predicates have objects of no other sort."""
        if objects == "any":
            return True
        if node.predicates is None:
            return False
        other = self.schema.has_attribute if objects == "entity" else self.schema.has_relation
        return not any(map(other, node.predicates))

    def _of_sort(self, thing: str, objects: Objects) -> str:
        sign = "!" if objects == "entity" else ""
        return f' FILTER({sign}STRSTARTS(STR({thing}), "{self.iris.base}{VALUE}"))'

    def _may_be_key(self, node: alg.Scan) -> bool:
        """Whether a triple of these predicates may be a qualifier of a statement."""
        return node.predicates is None or any(self.schema.qualifier_kinds(name) for name in node.predicates)

    def _predicate(self, node: alg.Scan, out: Group) -> str:
        if node.predicates is not None and len(node.predicates) == 1:
            return self.iris.predicate(node.predicates[0])
        p = self.variable("p")
        if node.predicates is not None:
            out.append(f"VALUES {p} {{ {' '.join(map(self.iris.predicate, node.predicates))} }}")
        return p

    @staticmethod
    def _all(of: Node) -> bool:
        """Whether a set is all entities."""
        return isinstance(of, alg.Every) and of.source is None and EntityKind.ENTITY in of.kinds and EntityKind.ROW in of.kinds

    def _skip(self, of: Node, node: alg.Scan) -> bool:
        """Whether every anchor of the scan is one of all entities, so that nothing has to be asked."""
        if not self._all(of):
            return False
        counted = ["concept_objects"] if node.anchor == "object" else ["concept_subjects", "concept_attributes"]
        if node.family != "any" and node.anchor == "subject":
            counted = ["concept_subjects" if node.family == "relation" else "concept_attributes"]
        return not any(self.counts.get(name, 1) for name in counted)

    def where(self, node: alg.Where, out: Group, wanted: Wanted) -> FactRows:
        """Facts whose object satisfies the test."""
        if isinstance(node.test, alg.Among):
            thing = wanted.object or self.variable("e")
            if wanted.among is not None:
                self.entities(node.test.entities, thing, out)
                rows = self.wanted(node.facts, out, replace(wanted, object=thing))
            else:
                rows = self.wanted(node.facts, out, replace(wanted, object=thing, among=node.test.entities))
            if (sort := self._of_sort(rows.object, "entity")) in out:
                out.remove(sort)
            rows.objects = "entity"
            return rows
        rows = self.wanted(node.facts, out, wanted)
        out.extend(test_patterns(self, node.test, rows.object, rows.objects, self._kinds(node.facts)))
        return rows

    def _kinds(self, node: Node) -> Kinds | None:
        """The types and units that the objects of facts may have; None where it is not known."""
        while isinstance(node, (alg.Where, alg.WhereQualifier, alg.WhereValidity, alg.During, alg.Turn)):
            node = node.facts
        if not isinstance(node, alg.Scan) or node.predicates is None:
            return None
        found: dict[tuple[Kind, str], int] = {}
        for name in node.predicates:
            found.update(self.schema.attribute_kinds(name))
        return found

    def where_qualifier(self, node: alg.WhereQualifier, out: Group, wanted: Wanted) -> FactRows:
        """Facts of which some qualifier satisfies the test."""
        rows = self.bound(node.facts, out, replace(wanted, whole=True))
        q = self.variable("q")
        kinds = self.schema.qualifier_kinds(node.key)
        out.append(f"{rows.statement} {self.iris.predicate(node.key)} {q} .")
        if isinstance(node.test, alg.Among):
            self.entities(node.test.entities, q, out)
            return rows
        entity = any(kind is Kind.ENTITY for kind, _ in kinds)
        value = any(kind is not Kind.ENTITY for kind, _ in kinds)
        objects: Objects = "any" if entity == value else "entity" if entity else "value"
        out.extend(test_patterns(self, node.test, q, objects, kinds))
        return rows

    def during(self, node: alg.During, out: Group, wanted: Wanted) -> FactRows:
        """Facts whose validity stands in the relation to an interval."""
        rows = self.bound(node.facts, out, replace(wanted, whole=True))
        a, b = self.variable("a"), self.variable("b")
        out.append(f"{rows.statement} <pred:valid_start> {a} . {rows.statement} <pred:valid_end> {b} .")
        out.append(f"FILTER({during_filter(node.relation, a, b, integer(node.interval.start), integer(node.interval.end))})")
        return rows

    def where_validity(self, node: alg.WhereValidity, out: Group, wanted: Wanted) -> FactRows:
        """Facts whose start or end, as its qualifiers have it, satisfies the test; a point in time is both."""
        rows = self.bound(node.facts, out, replace(wanted, whole=True))
        q, p, a, b = (self.variable(prefix) for prefix in "qpab")
        keys = [self.iris.predicate(name) for name in (START_TIME if node.part == "start" else END_TIME, POINT_IN_TIME)]
        out.append(f"VALUES {p} {{ {' '.join(keys)} }} {rows.statement} {p} {q} . {q} {TYPE} <pred:Time> .")
        out.append(f"{rows.statement} <pred:valid_start> {a} . {rows.statement} <pred:valid_end> {b} .")
        # Bounds in the wrong order are unknown, whatever the qualifiers say.
        out.append(f"FILTER({a} != {integer(UNKNOWN_START)} || {b} != {integer(UNKNOWN_END)})")
        out.extend(test_patterns(self, node.test, q, "value", {(Kind.TIME, "1"): 1}))
        return rows

    def turn(self, node: alg.Turn, out: Group, wanted: Wanted) -> FactRows:
        """The same statements, with the other end reached; attributes have no entity at their object."""
        rows = self.wanted(node.facts, out, wanted)
        if node.reach == "object" and rows.objects != "entity":
            out.append(self._of_sort(rows.object, "entity"))
            rows.objects = "entity"
        if rows.loose and node.reach == "object":
            self.settle(rows.subject, out)
            rows.loose = False
        rows.reached = rows.subject if node.reach == "subject" else rows.object
        return rows


def reach_of(node: Node) -> alg.End:
    """The end that facts reach."""
    while not isinstance(node, (alg.Scan, alg.Turn)):
        node = node.inputs()[0]
    return node.reach


ENTITIES: Final[dict[type[Node], Callable[[Compiler, Any, str, Group], bool]]] = {
    alg.Every: Compiler.every,
    alg.Known: Compiler.known,
    alg.Named: Compiler.named,
    alg.Members: Compiler.members,
    alg.Union: Compiler.union,
    alg.Intersect: Compiler.intersect,
    alg.Minus: Compiler.minus,
    alg.Neighbour: Compiler.neighbour,
    alg.Reached: Compiler.reached,
    alg.Namesakes: Compiler.namesakes,
    alg.Best: Compiler.best,
}
FACTS: Final[dict[type[Node], Callable[[Compiler, Any, Group, Wanted], FactRows]]] = {
    alg.Scan: Compiler.scan,
    alg.Where: Compiler.where,
    alg.WhereQualifier: Compiler.where_qualifier,
    alg.During: Compiler.during,
    alg.WhereValidity: Compiler.where_validity,
    alg.Turn: Compiler.turn,
}
