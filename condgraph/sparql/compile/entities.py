"""Sets of entities as graph patterns, in the one SPARQL 1.1 query that a plan becomes.

Each operator answers for itself (`support`): it is said by a few patterns over a variable for an
entity, or over subject, predicate, object and statement of a fact (`facts`). Sets need no more than
that: a pattern is existential, and what is selected in the end is DISTINCT.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, postorder
from condgraph.engine.algebra.tables import EntityTable, by_type
from condgraph.engine.errors import UnsupportedError
from condgraph.engine.facts import EntityKind
from condgraph.engine.values import Kind
from condgraph.sparql.compile.facts import FactPatterns
from condgraph.sparql.compile.group import NOTHING, TARGET, Group, Target
from condgraph.sparql.layout import ENTITY_CLASSES, TYPE, pred
from condgraph.sparql.literals import integer, string

#: A plan whose shared parts would be written out to more patterns than this is refused.
MOST_PATTERNS: Final = 20_000


class Compiler(FactPatterns):
    """Writes the patterns of a plan."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._patterns = 0

    def entities(self, node: Node, e: str, out: Group) -> bool:
        """Patterns that bind `e` to each entity of a set, some more than once; whether `e` is still
        loose.
        """
        self._patterns += 1
        if self._patterns > MOST_PATTERNS:
            raise UnsupportedError(TARGET, [f"a program of more than {MOST_PATTERNS} patterns"])
        return _BY_TYPE[type(node)](self, node, e, out)

    def settled(self, node: Node, e: str, out: Group) -> None:
        """The same, and `e` is bound to an entity in any case."""
        if self.entities(node, e, out):
            self.settle(e, out)

    def every(self, node: alg.AllEntities, e: str, out: Group) -> bool:
        """All entities of the kinds; of one source those that are rows of it or stand in its
        statements.
        """
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

    def named(self, node: alg.ByName, e: str, out: Group) -> bool:
        """Entities by exact name."""
        if len(node.names) == 1:
            out.append(f"{e} <pred:name> {string(node.names[0])} .")
        else:
            name = self.variable("n")
            out.append(f"VALUES {name} {{ {' '.join(map(string, node.names))} }} {e} <pred:name> {name} .")
        return False

    def known(self, node: alg.ById, e: str, out: Group) -> bool:
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
        """Entities in all parts: all patterns hold.

        Two paths that meet in `e` have one order of joins in a store without statistics, which may go
        along the first and back along the second, through all that hangs on a hub. So of several
        paths all but one are sub-selects where they have an entity between their ends.
        """
        loose = True
        paths = [part for part in node.parts if isinstance(part, alg.Reached)]
        long = [part for part in paths if _is_long(part)]
        apart = long if len(long) < len(paths) else long[1:]
        for part in node.parts:
            if self.target.dialect.selects_paths and any(part is one for one in apart):
                inner = Group()
                loose &= self.entities(part, e, inner)
                out.append(f"{{ SELECT DISTINCT {e} WHERE {{ {inner.text()} }} }}")
            else:
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

    def namesakes(self, node: alg.SameName, e: str, out: Group) -> bool:
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

    def best(self, node: alg.ArgExtreme, e: str, out: Group) -> bool:
        """The entities with the best value of a key, all ties; the most frequent type and unit
        compete.
        """
        groups = {group: n for group, n in self.schema.attribute_kinds(node.key).items() if group[0] in (Kind.QUANTITY, Kind.TIME)}
        if not groups:
            out.append(f"{e} <pred:name> {self.variable('n')} . {NOTHING}")
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
        """A query of the entities with their values of the key, the best first; None where several
        types or units may compete.
        """
        out = Group()
        if not self._keyed(node, out):
            return None
        return f"SELECT ?e ?x WHERE {{ {out.text()} }} ORDER BY {_by(node.direction)}"

    def tied(self, node: alg.ArgExtreme) -> str | None:
        """A query of one row: all that tie with the best, as IRIs each with its name behind it,
        percent-encoded, parted by spaces.

        The set is gone through once; where a query joins the best value to the set, Virtuoso works
        one of them out for each row of the other.
        """
        out = Group()
        if not self._keyed(node, out):
            return None
        out.append("?e <pred:name> ?name .")
        joined = 'GROUP_CONCAT(CONCAT(STR(?e), " ", ENCODE_FOR_URI(?name)); SEPARATOR=" ")'
        by = f"GROUP BY ?x ORDER BY {_by(node.direction)} LIMIT 1"
        return f"SELECT ?x ({joined} AS ?tied) WHERE {{ {out.text()} }} {by}"

    def _keyed(self, node: alg.ArgExtreme, out: Group) -> bool:
        """Patterns that bind `?e` to the entities and `?x` to what they are compared by; False
        where several types may compete.
        """
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
        # Virtuoso sorts long texts by when they were loaded, unless they are made new.
        key = "?x ." if term != "order" else "?y . BIND(STR(?y) AS ?x)"
        out.append(f"{rows.object} <pred:{term}> {key}")
        if len(kinds) > 1:
            out.append(f"{rows.object} {TYPE} {pred('Time' if groups[0][0] is Kind.TIME else 'Quantity')} .")
        return True

    def _extreme(
        self, scan: alg.Scan, term: str, largest: bool, kind: Kind, mixed: bool
    ) -> tuple[tuple[str, str], Callable[[str], str]]:
        """A sub-select of the best value among one type: its variable and text, and what makes sure
        of the type.
        """

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

    def _contest(self, node: alg.ArgExtreme, scan: alg.Scan, largest: bool, e: str, out: Group) -> bool:
        """Several types and units: a sub-select finds the most frequent (ties: times, no unit,
        units by name), the next the best of it.

        A value's type and unit are one text, so that each sub-select binds what the next one looks
        for.
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


def _is_long(path: alg.Reached) -> bool:
    """Whether a path leads on from other paths."""
    return any(isinstance(node, alg.Reached) for node in postorder(path) if node is not path)


def _by(direction: alg.Direction) -> str:
    return "DESC(?x)" if direction == "largest" else "?x"


#: What becomes of each set; `None` where the client works it out (`support`).
ENTITIES: Final[EntityTable[Compiler, [str, Group], bool]] = {
    "AllEntities": Compiler.every,
    "ById": Compiler.known,
    "ByName": Compiler.named,
    "Members": Compiler.members,
    "Union": Compiler.union,
    "Intersect": Compiler.intersect,
    "Minus": Compiler.minus,
    "Neighbour": Compiler.neighbour,
    "Reached": Compiler.reached,
    "SubjectsOf": None,
    "Referents": None,
    "SameName": Compiler.namesakes,
    "ArgExtreme": Compiler.best,
}
_BY_TYPE: Final = by_type(ENTITIES)
