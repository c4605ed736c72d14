"""Operators as patterns: sets of entities, and statements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, postorder
from condgraph.engine.algebra.tables import EntityTable, FactTable, by_type
from condgraph.engine.errors import UnknownNameError, UnsupportedError, nearest
from condgraph.engine.facts import END_TIME, POINT_IN_TIME, START_TIME, EntityKind
from condgraph.engine.iris import VALUE
from condgraph.engine.schema import Kinds
from condgraph.engine.values import UNKNOWN_END, UNKNOWN_START, Kind
from condgraph.sparql.compile import conditions
from condgraph.sparql.compile.solutions import entities_of, facts_of
from condgraph.sparql.layout import ENTITY_CLASSES, TYPE, integer, pred, string

# -- statements --------------------------------------------------------------------------------------
# Facts as graph patterns: scans, tests on objects, on qualifiers and on validity.
#
# A fact is the direct triple `<subject> <predicate> <object>` where that suffices, and its statement node
# where qualifiers, validity or a source are needed. The triple of a qualifier looks like a fact with a
# statement as subject; so a variable that no pattern restricts to entities is `loose`, and is given a
# name pattern before it is passed on.


def reach_of(node: Node) -> alg.End:
    """Return the end that facts reach."""
    while not isinstance(node, (alg.Scan, alg.OtherEnd, alg.FactsOf)):
        node = node.inputs()[0]
    return node.reach


# -- entities ----------------------------------------------------------------------------------------
# Sets of entities as graph patterns, in the one SPARQL 1.1 query of a plan.
#
# Each operator becomes a few patterns over the variable of an entity, or over subject, predicate, object and statement of a
# fact (`plan.SUPPORT` lists these operators). Sets need no more: a pattern is existential, and the query selects DISTINCT.


#: A plan whose shared parts expand to more patterns than this is refused.
MAX_PATTERNS: Final = 20_000


class Compiler:
    """Writes the patterns of a plan: `entities` for sets, `facts` for statements.

    Variables are numbered in order, so that equal plans give equal texts.
    """

    def __init__(self, target: conditions.Target) -> None:
        self.target, self.iris, self.schema, self.counts = target, target.names, target.schema, target.counts
        #: Whether the client removes predicates of the vocabulary.
        self.client_filters = False
        self._variables = self._patterns = 0
        #: Variables of rows, by their names in the plan.
        self.row_variables: dict[str, str] = {}

    def variable(self, prefix: str) -> str:
        """Return a fresh variable."""
        self._variables += 1
        return f"?{prefix}{self._variables}"

    @staticmethod
    def group() -> conditions.Group:
        """Return an empty group."""
        return conditions.Group()

    def settle(self, e: str, out: conditions.Group) -> None:
        """Restrict a loose variable to entities: statements have no names."""
        out.append(f"{e} <pred:name> {self.variable('n')} .")

    def source(self, name: str) -> str:
        """Return the node of a source; raises `UnknownNameError`."""
        if name not in self.schema.sources:
            raise UnknownNameError("source", name, candidates=nearest(name, self.schema.sources))
        return self.iris.source(name)

    # -- facts -------------------------------------------------------------------------------------

    def facts(self, node: Node, out: conditions.Group, *, whole: bool = False, reached: str | None = None) -> conditions.FactTerms:
        """Add patterns of facts. `whole` binds the statement; `reached` names the variable of the reached end."""
        subject, thing = (reached, None) if reach_of(node) == "subject" else (None, reached)
        return self.bound(node, out, conditions.FactNeeds(whole, subject, thing))

    def bound(self, node: Node, out: conditions.Group, wanted: conditions.FactNeeds) -> conditions.FactTerms:
        """Add patterns of facts, and bind the statement where needed."""
        rows = self.fact_patterns(node, out, wanted)
        out.extend(rows.bind)
        rows.bind.clear()
        return rows

    def fact_patterns(self, node: Node, out: conditions.Group, wanted: conditions.FactNeeds) -> conditions.FactTerms:
        """Add patterns of facts, for operators that pass on what is needed of them."""
        return _FACTS_BY_TYPE[type(node)](self, node, out, wanted)

    def scan(self, node: alg.Scan, out: conditions.Group, wanted: conditions.FactNeeds) -> conditions.FactTerms:
        """The statements of a scan."""
        subject = wanted.subject or self.variable("e")
        thing = wanted.object or self.variable("e" if node.family == "relation" else "v")
        target = subject if node.reach == "subject" else thing
        anchor = subject if node.anchor == "subject" else thing
        # Whole statements are fetched with all objects, even those that no further step can follow.
        objects = self._objects(node, fetched=wanted.whole and wanted.object is None)
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
            # The direct triple adds nothing, but most stores start with it. A store without statistics
            # would read all statements of one end for each of the other.
            reaches = objects == "entity" and node.anchor != node.reach and of is not None and not self._skip(of, node)
            if not predicate.startswith("?") and (self.target.dialect.counts or wanted.among is not None or not reaches):
                out.append(f"{subject} {predicate} {thing} .")
            if not self._every_object_fits(node, objects):
                out.append(self._of_sort(thing, objects))
            rows = conditions.FactTerms(subject, predicate, thing, statement, target, objects)
            ends = [f"{statement} <pred:fact_h> {subject} .", f"{statement} <pred:fact_t> {thing} ."]
            # First the end to start from, for stores that keep the written order of similar patterns.
            first, last = ends if node.anchor == "subject" else reversed(ends)
            rows.bind.append(f"{first} {statement} <pred:fact_r> {predicate} . {last}")
            if node.source is not None:
                rows.bind.append(f"{statement} <pred:source> {self.source(node.source)} .")
            return rows
        out.append(f"{subject} {predicate} {thing} .")
        # Any predicate: a store that cannot continue from the union starts at the other end.
        out.is_separate |= node.predicates is None
        if node.predicates is None and not self.client_filters:
            out.append(f'FILTER(STRSTARTS(STR({predicate}), "{self.iris.base}"))')
        if not self._every_object_fits(node, objects):
            out.append(self._of_sort(thing, objects))
        # The subject may be a statement, if the predicate is also a qualifier key.
        doubtful = (loose or node.anchor == "object") and self._may_be_key(node)
        if doubtful and node.reach == "object":
            self.settle(subject, out)
            doubtful = False
        return conditions.FactTerms(subject, predicate, thing, None, target, objects, loose=doubtful)

    def _objects(self, node: alg.Scan, *, fetched: bool = False) -> conditions.Objects:
        """Return what the objects can be, by the family of the scan and the schema."""
        if node.family == "relation" or node.anchor == "object" or (node.reach == "object" and not fetched):
            return "entity"
        if node.family == "attribute":
            return "value"
        if node.predicates is not None:
            relation = any(map(self.schema.has_relation, node.predicates))
            attribute = any(map(self.schema.has_attribute, node.predicates))
            if relation != attribute:
                return "entity" if relation else "value"
        return "any"

    def _every_object_fits(self, node: alg.Scan, objects: conditions.Objects) -> bool:
        """Tell whether the predicates only have objects of this kind."""
        if objects == "any":
            return True
        if node.predicates is None:
            return False
        other = self.schema.has_attribute if objects == "entity" else self.schema.has_relation
        return not any(map(other, node.predicates))

    def _of_sort(self, thing: str, objects: conditions.Objects) -> str:
        sign = "!" if objects == "entity" else ""
        return f' FILTER({sign}STRSTARTS(STR({thing}), "{self.iris.base}{VALUE}"))'

    def _may_be_key(self, node: alg.Scan) -> bool:
        """Tell whether a triple of these predicates may be a qualifier of a statement."""
        return node.predicates is None or any(self.schema.qualifier_kinds(name) for name in node.predicates)

    def _predicate(self, node: alg.Scan, out: conditions.Group) -> str:
        if node.predicates is not None and len(node.predicates) == 1:
            return self.iris.predicate(node.predicates[0])
        p = self.variable("p")
        if node.predicates is not None:
            out.append(f"VALUES {p} {{ {' '.join(map(self.iris.predicate, node.predicates))} }}")
        return p

    @staticmethod
    def _all(of: Node) -> bool:
        """Tell whether a set is all entities."""
        return (
            isinstance(of, alg.AllEntities) and of.source is None and EntityKind.ENTITY in of.kinds and EntityKind.ROW in of.kinds
        )

    def _skip(self, of: Node, node: alg.Scan) -> bool:
        """Tell whether every anchor of the scan belongs to "all entities", so that no pattern is needed."""
        if not self._all(of):
            return False
        counted = ["concept_objects"] if node.anchor == "object" else ["concept_subjects", "concept_attributes"]
        if node.family != "any" and node.anchor == "subject":
            counted = ["concept_subjects" if node.family == "relation" else "concept_attributes"]
        return not any(self.counts.get(name, 1) for name in counted)

    def where(self, node: alg.Where, out: conditions.Group, wanted: conditions.FactNeeds) -> conditions.FactTerms:
        """Facts whose object passes the test."""
        if isinstance(node.condition, alg.Among):
            thing = wanted.object or self.variable("e")
            if wanted.among is not None:
                self.entities(node.condition.entities, thing, out)
                rows = self.fact_patterns(node.facts, out, replace(wanted, object=thing))
            else:
                rows = self.fact_patterns(node.facts, out, replace(wanted, object=thing, among=node.condition.entities))
            if (sort := self._of_sort(rows.object, "entity")) in out:
                out.remove(sort)
            rows.objects = "entity"
            return rows
        rows = self.fact_patterns(node.facts, out, wanted)
        out.extend(conditions.test_patterns(self, node.condition, rows.object, rows.objects, self.kinds(node.facts)))
        return rows

    def kinds(self, node: Node) -> Kinds | None:
        """Return the types and units that the objects of facts may have; None where unknown."""
        while isinstance(node, alg.Facts) and (inner := alg.passed(node)) is not None:
            node = inner
        if not isinstance(node, alg.Scan) or node.predicates is None:
            return None
        kinds: dict[tuple[Kind, str], int] = {}
        for name in node.predicates:
            kinds.update(self.schema.attribute_kinds(name))
        return kinds

    def where_qualifier(
        self, node: alg.WhereQualifier, out: conditions.Group, wanted: conditions.FactNeeds
    ) -> conditions.FactTerms:
        """Facts with a qualifier that passes the test."""
        rows = self.bound(node.facts, out, replace(wanted, whole=True))
        q = self.variable("q")
        kinds = self.schema.qualifier_kinds(node.key)
        out.append(f"{rows.statement} {self.iris.predicate(node.key)} {q} .")
        if isinstance(node.condition, alg.Among):
            self.entities(node.condition.entities, q, out)
            return rows
        entity = any(kind is Kind.ENTITY for kind, _ in kinds)
        value = any(kind is not Kind.ENTITY for kind, _ in kinds)
        objects: conditions.Objects = "any" if entity == value else "entity" if entity else "value"
        out.extend(conditions.test_patterns(self, node.condition, q, objects, kinds))
        return rows

    def during(self, node: alg.During, out: conditions.Group, wanted: conditions.FactNeeds) -> conditions.FactTerms:
        """Facts whose validity relates to an interval."""
        rows = self.bound(node.facts, out, replace(wanted, whole=True))
        assert rows.statement is not None
        out.append(conditions.during_test(self, node, rows.statement))
        return rows

    def where_validity(self, node: alg.WhereValidity, out: conditions.Group, wanted: conditions.FactNeeds) -> conditions.FactTerms:
        """Facts whose start or end, as stated by qualifiers, passes the test; a point in time is both."""
        rows = self.bound(node.facts, out, replace(wanted, whole=True))
        q, p, a, b = (self.variable(prefix) for prefix in "qpab")
        keys = [self.iris.predicate(name) for name in (START_TIME if node.part == "start" else END_TIME, POINT_IN_TIME)]
        out.append(f"VALUES {p} {{ {' '.join(keys)} }} {rows.statement} {p} {q} . {q} {TYPE} <pred:Time> .")
        out.append(f"{rows.statement} <pred:valid_start> {a} . {rows.statement} <pred:valid_end> {b} .")
        # Bounds in the wrong order make the validity unknown, whatever the qualifiers are.
        out.append(f"FILTER({a} != {integer(UNKNOWN_START)} || {b} != {integer(UNKNOWN_END)})")
        out.extend(conditions.test_patterns(self, node.condition, q, "value", {(Kind.TIME, "1"): 1}))
        return rows

    def other_end(self, node: alg.OtherEnd, out: conditions.Group, wanted: conditions.FactNeeds) -> conditions.FactTerms:
        """The same statements with the other end reached; attributes have no entity as object."""
        rows = self.fact_patterns(node.facts, out, wanted)
        if node.reach == "object" and rows.objects != "entity":
            out.append(self._of_sort(rows.object, "entity"))
            rows.objects = "entity"
        if rows.loose and node.reach == "object":
            self.settle(rows.subject, out)
            rows.loose = False
        rows.reached = rows.subject if node.reach == "subject" else rows.object
        return rows

    def entities(self, node: Node, e: str, out: conditions.Group) -> bool:
        """Add patterns that bind `e` to each entity of a set, possibly repeated; tell whether `e` is still loose."""
        self._patterns += 1
        if self._patterns > MAX_PATTERNS:
            raise UnsupportedError(conditions.TARGET, [f"a program of more than {MAX_PATTERNS} patterns"])
        return _ENTITIES_BY_TYPE[type(node)](self, node, e, out)

    def settled(self, node: Node, e: str, out: conditions.Group) -> None:
        """Like `entities`, with `e` restricted to entities in any case."""
        if self.entities(node, e, out):
            self.settle(e, out)

    def all_entities(self, node: alg.AllEntities, e: str, out: conditions.Group) -> bool:
        """All entities of some kinds; with a source, its own rows, or these and the ends of its statements."""
        kinds = tuple(dict.fromkeys(node.kinds))
        if node.source is not None:
            f, source = self.variable("f"), self.source(node.source)
            rows = f"{e} <pred:source> {source} . {e} {TYPE} <pred:Row> ."
            if node.own:
                out.append(rows)
                return False
            part = " UNION ".join(f"{{ {f} <pred:source> {source} . {f} <pred:{end}> {e} . }}" for end in ("fact_h", "fact_t"))
            out.append(f"{{ {part} UNION {{ {rows} }} }}")
        if not self.counts.get("rows", 1):
            kinds = tuple(kind for kind in kinds if kind is not EntityKind.ROW) or kinds
        classes = [pred(ENTITY_CLASSES[kind]) for kind in kinds]
        if len(classes) == 1:
            out.append(f"{e} {TYPE} {classes[0]} .")
        else:
            kind = self.variable("k")
            out.append(f"VALUES {kind} {{ {' '.join(classes)} }} {e} {TYPE} {kind} .")
        return False

    def by_name(self, node: alg.ByName, e: str, out: conditions.Group) -> bool:
        if len(node.names) == 1:
            out.append(f"{e} <pred:name> {string(node.names[0])} .")
        else:
            name = self.variable("n")
            out.append(f"VALUES {name} {{ {' '.join(map(string, node.names))} }} {e} <pred:name> {name} .")
        return False

    def by_id(self, node: alg.ById, e: str, out: conditions.Group) -> bool:
        out.append(f"VALUES {e} {{ {' '.join(map(self.iris.entity, node.ids))} }} {e} <pred:name> {self.variable('n')} .")
        return False

    def members(self, node: alg.Members, e: str, out: conditions.Group) -> bool:
        """Members of any of the concepts; stored memberships include those of subclasses."""
        c = self.variable("c")
        out.append(f"{e} <pred:instance_of> {c} .")
        self.entities(node.concepts, c, out)
        return False

    def union(self, node: alg.Union, e: str, out: conditions.Group) -> bool:
        branches, loose = [], False
        for part in node.parts:
            branches.append(conditions.Group())
            loose |= self.entities(part, e, branches[-1])
        out.unions.append((e, branches))
        return loose

    def intersect(self, node: alg.Intersect, e: str, out: conditions.Group) -> bool:
        """Entities in all parts: all patterns hold.

        For two paths that meet in `e`, a store without statistics may follow the first and go back along the second,
        through all neighbours of a hub. So of several paths with an entity between their ends, all but one become
        sub-selects.
        """
        loose = True
        paths = [part for part in node.parts if isinstance(part, alg.Reached)]
        long_paths = [part for part in paths if _is_long(part)]
        selected = long_paths if len(long_paths) < len(paths) else long_paths[1:]
        for part in node.parts:
            if self.target.dialect.selects_paths and any(part is path for path in selected):
                inner = conditions.Group()
                loose &= self.entities(part, e, inner)
                out.append(f"{{ SELECT DISTINCT {e} WHERE {{ {inner.text()} }} }}")
            else:
                loose &= self.entities(part, e, out)
        return loose

    def minus(self, node: alg.Minus, e: str, out: conditions.Group) -> bool:
        loose = self.entities(node.left, e, out)
        inner = conditions.Group()
        self.entities(node.right, e, inner)
        out.minus.append(f"MINUS {{ SELECT DISTINCT {e} WHERE {{ {inner.text()} }} }}")
        return loose

    def reached(self, node: alg.Reached, e: str, out: conditions.Group) -> bool:
        return self.facts(node.facts, out, reached=e).loose

    def same_name(self, node: alg.SameName, e: str, out: conditions.Group) -> bool:
        """All entities that share a name with these."""
        of, name = self.variable("e"), self.variable("n")
        self.entities(node.of, of, out)
        out.append(f"{of} <pred:name> {name} . {e} <pred:name> {name} .")
        return False

    def neighbour(self, node: alg.Neighbour, e: str, out: conditions.Group) -> bool:
        """The rows at a distance in their source."""
        of, source, place, other = (self.variable(prefix) for prefix in ("e", "s", "n", "n"))
        self.entities(node.of, of, out)
        out.append(
            f"{of} {TYPE} <pred:Row> . {of} <pred:source> {source} . {of} <pred:position> {place} . {e} <pred:source> {source} . "
            f"{e} <pred:position> {other} . FILTER({other} = {place} + {integer(node.distance)})"
        )
        return False

    def arg_extreme(self, node: alg.ArgExtreme, e: str, out: conditions.Group) -> bool:
        """The entities with the best value of a key, including ties; the most frequent type and unit competes."""
        groups = {group: n for group, n in self.schema.attribute_kinds(node.key).items() if group[0] in (Kind.QUANTITY, Kind.TIME)}
        if not groups:
            out.append(f"{e} <pred:name> {self.variable('n')} . {conditions.NEVER}")
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

    def ordered(self, node: alg.ArgExtreme) -> str | None:
        """Return a query of the entities with their values of the key, the best first;

        None if several types or units may compete.
        """
        out = conditions.Group()
        if not self._keyed(node, out):
            return None
        return f"SELECT ?e ?x WHERE {{ {out.text()} }} ORDER BY {_by(node.direction)}"

    def tied(self, node: alg.ArgExtreme) -> str | None:
        """Return a query of one row: all that tie with the best, separated by spaces, each an IRI followed by its encoded name.

        The set is read once; if a query joins the best value with the set, Virtuoso computes one of them for each row
        of the other.
        """
        out = conditions.Group()
        if not self._keyed(node, out):
            return None
        out.append("?e <pred:name> ?name .")
        joined = 'GROUP_CONCAT(CONCAT(STR(?e), " ", ENCODE_FOR_URI(?name)); SEPARATOR=" ")'
        by = f"GROUP BY ?x ORDER BY {_by(node.direction)} LIMIT 1"
        return f"SELECT ?x ({joined} AS ?tied) WHERE {{ {out.text()} }} {by}"

    def _keyed(self, node: alg.ArgExtreme, out: conditions.Group) -> bool:
        """Add patterns that bind `?e` to the entities and `?x` to their sort key; False if several types may compete."""
        kinds = self.schema.attribute_kinds(node.key)
        groups = [group for group in kinds if group[0] in (Kind.QUANTITY, Kind.TIME)]
        if len(groups) != 1:
            return False
        term = "order" if self.counts.get("inexact") else "value"
        if groups[0][0] is Kind.TIME:
            term = "end" if node.direction == "largest" else "start"
        rows = self.facts(alg.Scan(node.of, (node.key,), family="attribute"), out, reached="?e")
        if rows.loose:
            self.settle("?e", out)
        # Virtuoso sorts long texts by load order, unless they are computed.
        key = "?x ." if term != "order" else "?y . BIND(STR(?y) AS ?x)"
        out.append(f"{rows.object} <pred:{term}> {key}")
        if len(kinds) > 1:
            out.append(f"{rows.object} {TYPE} {pred('Time' if groups[0][0] is Kind.TIME else 'Quantity')} .")
        return True

    def _extreme(
        self, scan: alg.Scan, term: str, largest: bool, kind: Kind, mixed: bool
    ) -> tuple[tuple[str, str], Callable[[str], str]]:
        """Return a sub-select of the best value of one type, as its variable and text, and a function that adds the type test."""

        def condition(v: str) -> str:
            return f" {v} {TYPE} {pred('Time' if kind is Kind.TIME else 'Quantity')} ." if mixed else ""

        inner = conditions.Group()
        rows = self.facts(scan, inner)
        if rows.loose:
            self.settle(rows.reached, inner)
        x, best = self.variable("x"), self.variable("best")
        inner.append(f"{rows.object} <pred:{term}> {x} .{condition(rows.object)}")
        # Virtuoso sorts long texts by load order, unless they are computed.
        of = f"STR({x})" if term == "order" else x
        text = f"SELECT ({'MAX' if largest else 'MIN'}({of}) AS {best}) WHERE {{ {inner.text()} }}"
        return (best, text), condition

    def _contest(self, node: alg.ArgExtreme, scan: alg.Scan, largest: bool, e: str, out: conditions.Group) -> bool:
        """Compare several types and units: one sub-select finds the most frequent one, the next its best value.

        Ties: times come first, then no unit, then units by name. Type and unit of a value form one text, so that each
        sub-select binds what the next one looks for.
        """
        number = "order" if self.counts.get("inexact") else "value"
        edge = "end" if largest else "start"

        def grouped(v: str, group: str, key: str) -> str:
            unit = self.variable("u")
            named = f'CONCAT("1", IF({unit} = "1", "", {unit}))'
            return (
                f"{{ {v} <pred:unit> {unit} . {v} <pred:{number}> {key} . BIND({named} AS {group}) }} UNION "
                f'{{ {v} <pred:{edge}> {key} . BIND("0" AS {group}) }}'
            )

        winner, best = self.variable("g"), self.variable("best")
        count = self.variable("times")
        inner = conditions.Group()
        rows = self.facts(scan, inner, whole=True)
        group, key = self.variable("g"), self.variable("x")
        inner.append(grouped(rows.object, group, key))
        most = (
            f"SELECT ({group} AS {winner}) (COUNT(DISTINCT {rows.statement}) AS {count}) WHERE {{ {inner.text()} }} "
            f"GROUP BY {group} ORDER BY DESC({count}) {group} LIMIT 1"
        )
        inner = conditions.Group([f"{{ {most} }}"])
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


def _is_long(path: alg.Reached) -> bool:
    """Tell whether a path continues other paths."""
    return any(isinstance(node, alg.Reached) for node in postorder(path) if node is not path)


def _by(direction: alg.Direction) -> str:
    return "DESC(?x)" if direction == "largest" else "?x"


#: Methods by set operator; None where the client computes it (`plan.SUPPORT`).
ENTITIES: Final[EntityTable[Compiler, [str, conditions.Group], bool]] = {
    "AllEntities": Compiler.all_entities,
    "ById": Compiler.by_id,
    "ByName": Compiler.by_name,
    "Members": Compiler.members,
    "Union": Compiler.union,
    "Intersect": Compiler.intersect,
    "Minus": Compiler.minus,
    "Neighbour": Compiler.neighbour,
    "Reached": Compiler.reached,
    "SubjectsOf": None,
    "Referents": None,
    "SameName": Compiler.same_name,
    "ArgExtreme": Compiler.arg_extreme,
}
_ENTITIES_BY_TYPE: Final = by_type(ENTITIES) | {alg.EntitiesOf: entities_of}

#: Methods by operator; None where the client computes it (`plan.SUPPORT`).
FACTS: Final[FactTable[Compiler, [conditions.Group, conditions.FactNeeds], conditions.FactTerms]] = {
    "Scan": Compiler.scan,
    "Where": Compiler.where,
    "WhereQualifier": Compiler.where_qualifier,
    "During": Compiler.during,
    "DuringAny": None,
    "WhereValidity": Compiler.where_validity,
    "OtherEnd": Compiler.other_end,
}
_FACTS_BY_TYPE: Final = by_type(FACTS) | {alg.FactsOf: facts_of}
