"""Lowers logical queries to the algebra, so that every store answers them from the graph's own facts.

A projection is a scan, an intersection with negated parts a difference. A complement is taken among
all entities, concepts and rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from condgraph.engine import algebra as alg
from condgraph.engine.errors import UnknownNameError, UnsupportedError, nearest
from condgraph.engine.facts import EntityKind
from condgraph.engine.lowered import Lowered
from condgraph.engine.schema import Schema
from condgraph.languages.logic import tree as query_tree
from condgraph.languages.logic.convert import checked_safe, tree_of
from condgraph.languages.logic.formula import Atom, Query, Typed, name_text
from condgraph.languages.logic.structures import is_nested, nested
from condgraph.languages.logic.text import read
from condgraph.names.words import Forms, OnUnknown, read_as

#: A variable ranges over every node of a graph.
EVERY_KIND: Final = (EntityKind.ENTITY, EntityKind.CONCEPT, EntityKind.ROW)


def query_of(program: Any) -> Query:
    """Return a query from its text, from BetaE's tuples (also as a text of lists), or unchanged."""
    if isinstance(program, Query):
        return program
    return nested(program) if is_nested(program) else read(program if isinstance(program, str) else str(program))


def lower(program: Any, schema: Schema, *, on_unknown: OnUnknown = "error", bound: bool = False) -> Lowered:
    """Parse a query and return its plan.

    `on_unknown="empty"` lets unknown names match nothing, with a warning; "nearest" replaces an unknown
    relation by the nearest name, as a substitution. `bound` means that something else limits the answers.

    Raises `ParseError`, `CyclicQueryError`, `UnsafeQueryError`, `UnknownNameError` with the nearest
    names, and `UnsupportedError` for `exists ?v. (a and not b(?v, ?x))`, for which the algebra has no
    operator.
    """
    query, warnings = as_written(query_of(program), schema, on_unknown)
    tree = tree_of(query)
    checked_safe(tree, bound=bound)
    result = lowered(tree, schema, lenient=on_unknown == "empty")
    result.warnings[:0] = warnings
    return result


def as_written(query: Query, schema: Schema, on_unknown: OnUnknown = "error") -> tuple[Query, list[str]]:
    """Return a query with the graph's spelling of relations and concepts, and warnings.

    Only case, spacing, plural or tense may differ, unless `on_unknown="nearest"` accepts more. Names
    that the graph does not have stay.
    """
    warnings: list[str] = []

    def resolved(kind: str, name: str, names: Sequence[str]) -> str:
        # A name of another kind is reported as that, not corrected.
        if other_use(schema, name, kind) is not None:
            return name
        result, warning, _ = read_as(kind, name, Forms.of(schema.kept, kind, names), on_unknown)
        if result is None or warning is None:
            return name
        if warning not in warnings:
            warnings.append(warning)
        return result

    def respelled(node: Any) -> Any:
        if isinstance(node, Atom) and not schema.has_relation(node.relation):
            return replace(node, relation=resolved("relation", node.relation, schema.relations))
        if isinstance(node, Typed) and schema.table_called(node.concept) is None and not schema.has_concept(node.concept):
            return replace(node, concept=resolved("concept", node.concept, (*schema.concepts, *schema.tables)))
        return node

    rewritten: Query = alg.remade(query, respelled)
    return rewritten, warnings


def lowered(tree: query_tree.Tree, schema: Schema, *, lenient: bool = False) -> Lowered:
    """Return the plan of a tree."""
    if any(isinstance(node, query_tree.Projection) and node.anti for node in query_tree.walk(tree)):
        raise UnsupportedError(
            "the algebra",
            ["an `exists` that reaches the answer by a negated atom"],
            hint="graph.logic(...) answers it; `not exists` is another question, which the algebra has",
        )
    lowering = _Lowering(schema, lenient)
    plan = lowering.entities(tree)
    return Lowered(plan, lowering.steps, lowering.warnings)


def other_use(schema: Schema, name: str, wanted: str) -> str | None:
    """Return a hint if the graph has a name, but not as a relation (or concept)."""
    if wanted == "relation" and schema.has_attribute(name):
        return f"{name} is an attribute, whose values are not entities; query it in another language"
    if wanted == "relation" and schema.has_concept(name):
        return f"{name} is a type, of one variable: {name_text(name)}(?x)"
    if wanted == "concept" and schema.has_relation(name):
        return f"{name} is a relation, between two: {name_text(name)}(?x, ...) or {name_text(name)}(..., ?x)"
    return None


class _Lowering:
    """Shared state of the rules."""

    def __init__(self, schema: Schema, lenient: bool) -> None:
        self.schema, self.lenient = schema, lenient
        self.steps: list[tuple[str, alg.Node]] = []
        self.warnings: list[str] = []

    def entities(self, tree: query_tree.Tree) -> alg.Entities:
        """Return the operators of a node, and record a step."""
        result = self._entities(tree)
        self.steps.append((_STEPS[type(tree)], result))
        return result

    def _entities(self, tree: query_tree.Tree) -> alg.Entities:
        if isinstance(tree, query_tree.Anchor):
            return self._anchor(tree)
        if isinstance(tree, query_tree.OfType):
            table = self.schema.table_called(tree.concept)
            if table is not None:
                return alg.AllEntities((EntityKind.ROW,), table, own=True)
            if not self.schema.has_concept(tree.concept):
                hint = other_use(self.schema, tree.concept, "concept")
                known = (*self.schema.concepts, *self.schema.tables)
                self._unknown("concept", tree.concept, nearest(tree.concept, known), tree, hint)
            return alg.Members(alg.ByName((tree.concept,)))
        if isinstance(tree, query_tree.Projection):
            if not self.schema.has_relation(tree.relation):
                hint = other_use(self.schema, tree.relation, "relation")
                self._unknown("relation", tree.relation, nearest(tree.relation, self.schema.relations), tree, hint)
            of = None if isinstance(tree.of, query_tree.Anything) else self.entities(tree.of)
            ends = ("object", "subject") if tree.inverse else ("subject", "object")
            return alg.Reached(alg.Scan(of, (tree.relation,), *ends, "relation"))  # type: ignore[arg-type]
        if isinstance(tree, query_tree.Union):
            return alg.union(*(self.entities(part) for part in tree.parts))
        if isinstance(tree, query_tree.Intersection):
            return self._intersection(tree)
        if isinstance(tree, query_tree.Complement):
            return alg.Minus(alg.AllEntities(EVERY_KIND), self.entities(tree.part))
        return alg.AllEntities(EVERY_KIND)

    def _intersection(self, tree: query_tree.Intersection) -> alg.Entities:
        """Subtract the negated parts from the intersection of the others."""
        named = [part for part in tree.parts if not isinstance(part, query_tree.Complement)]
        if any(map(query_tree.bounded, named)):
            named = [part for part in named if not isinstance(part, query_tree.Anything)]
        positive = alg.intersect(*map(self.entities, named)) if named else alg.AllEntities(EVERY_KIND)
        negative = [self.entities(part.part) for part in tree.parts if isinstance(part, query_tree.Complement)]
        return alg.Minus(positive, alg.union(*negative)) if negative else positive

    def _anchor(self, anchor: query_tree.Anchor) -> alg.Entities:
        schema, name = self.schema, anchor.name
        if anchor.is_id:
            if not schema.has_id(name):
                self._unknown("id", name, [], anchor)
            return alg.ById((name,))
        if not schema.has_entity(name):
            hint = f"it is an id: <{name}>" if schema.has_id(name) else None
            self._unknown("entity", name, [] if self.lenient else schema.nearest_entities(name), anchor, hint)
        return alg.ByName((name,))

    def _unknown(
        self,
        kind: str,
        name: str,
        candidates: list[str],
        node: query_tree.Anchor | query_tree.OfType | query_tree.Projection,
        hint: str | None = None,
    ) -> None:
        error = UnknownNameError(kind, name, candidates=candidates, span=node.span, hint=hint)
        if not self.lenient:
            raise error
        self.warnings.append(f"{error}; it matches nothing")


_STEPS: Final = {
    query_tree.Anchor: "constant", query_tree.Anything: "anything", query_tree.OfType: "type",
    query_tree.Projection: "relation", query_tree.Intersection: "and", query_tree.Union: "or",
    query_tree.Complement: "not",
}  # fmt: skip
