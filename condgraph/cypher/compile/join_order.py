"""Where an intersection begins: at its smallest part, with the scans of the others made from there.

A scan that looks at a whole attribute and a set that is small meet more cheaply when the statements
of the set's members alone are looked at: `Intersect(A, Reached(Where(Scan(None, p), t)))` is
`Reached(Where(Scan(A, p), t))`. In process this is decided when sizes are known. A server does what
the text says, so it is decided here, by estimates.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from condgraph.cypher.compile.estimate import Estimates
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, postorder
from condgraph.engine.passes.rewrite import rewrite

if TYPE_CHECKING:
    from condgraph.engine.stored_schema import StoredSchema

#: What it costs to go from an entity to its statements, as a multiple of going from a value in an
#: index to its entity.
OUTWARD: Final = 2.5


def arrange(plan: Node, schema: StoredSchema) -> Node:
    """The same plan with whole scans begun at small sets."""
    order = postorder(plan)
    if not any(isinstance(node, alg.Intersect) for node in order):
        return plan
    taken = Counter(id(child) for node in order for child in node.inputs())
    # What others take as well is there anyway, and stays what it is.
    several = {id(node) for node in order if taken[id(node)] > 1}
    estimates = Estimates(schema)

    def rule(node: Node) -> Node:
        return _begun(node, estimates, several, schema) if isinstance(node, alg.Intersect) else node

    return rewrite(plan, rule)


def _begun(node: alg.Intersect, estimates: Estimates, several: set[int], schema: StoredSchema) -> alg.Entities:
    parts = sorted((part for part in node.parts if not isinstance(part, alg.AllEntities)), key=estimates.rows)
    rest: list[alg.Entities] = [part for part in node.parts if isinstance(part, alg.AllEntities)]
    if len(parts) < 2:
        return node
    start, changed = parts[0], False
    for part in parts[1:]:
        scan = None if id(part) in several else whole_scan(part, several)
        if (
            scan is not None
            and estimates.rows(start) * OUTWARD < estimates.statements(scan)
            and not _selective(part, start, estimates)
        ):
            start, changed = _from(part, start, schema), True
        else:
            rest.append(part)
    if not changed:
        return node
    return alg.Intersect((start, *rest)) if rest else start


def _selective(part: alg.Entities, start: alg.Entities, estimates: Estimates) -> bool:
    """Whether an index gives the part with less work than it takes to look at the statements of
    every member of the start.
    """
    return estimates.rows(part) < estimates.rows(start)


def whole_scan(part: Node, several: set[int]) -> alg.Scan | None:
    """The scan of any subject, under nothing but filters, whose subjects are the set; None where
    the set is something else.
    """
    if not isinstance(part, alg.Reached) or id(part.facts) in several:
        return None
    facts = part.facts
    while facts.facets.filters and id(facts) not in several and (inner := alg.passed(facts)) is not None:
        facts = inner
    if not isinstance(facts, alg.Scan) or facts.predicates is None or facts.source is not None:
        return None
    if (facts.anchor, facts.reach) != ("subject", "subject"):
        return None
    return facts if facts.of is None or (isinstance(facts.of, alg.AllEntities) and facts.of.source is None) else None


def kinds_matter(scan: alg.Scan, of: alg.AllEntities, schema: StoredSchema) -> bool:
    """Whether kinds leave out any anchor of a scan: all but concepts do not, where concepts are no
    subjects.
    """
    concepts = (schema.concept_subjects and scan.family != "attribute") or (schema.concept_attributes and scan.family != "relation")
    return scan.anchor != "subject" or concepts or of.kinds != alg.ENTITY_KINDS


def _from(part: alg.Entities, start: alg.Entities, schema: StoredSchema) -> alg.Entities:
    """The set with its scan begun at another set; it still asks for its kinds of subjects, where
    there are others.
    """
    assert isinstance(part, alg.Reached)

    def begun(facts: alg.Facts) -> alg.Facts:
        if isinstance(facts, alg.Scan):
            asks = isinstance(facts.of, alg.AllEntities) and kinds_matter(facts, facts.of, schema)
            return replace(facts, of=alg.Intersect((start, facts.of)) if asks and facts.of is not None else start)
        inner = alg.passed(facts)
        assert inner is not None
        return alg.passing(facts, begun(inner))

    return replace(part, facts=begun(part.facts))
