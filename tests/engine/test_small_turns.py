"""Where rules of values and columns turn: texts of bounds, units, concepts beside rows. Changes of one
operator lived there.
"""

from __future__ import annotations

from condgraph.engine.check import built
from condgraph.engine.facts import Entity, EntityKind, Member, Sourced
from condgraph.engine.values import Time


def test_bounds_of_spans_are_months_where_they_can() -> None:
    for first, last in (((1990, 3), (1991, 5)), ((1990, 2), (1991, 11))):
        span = Time.span(Time.month(*first), Time.month(*last))
        assert str(span) == f"{first[0]}-{first[1]:02}/{last[0]}-{last[1]:02}"
        assert Time.parse(str(span)) == span


def test_rows_are_no_concepts() -> None:
    row = Sourced(Entity("r", "R", EntityKind.ROW, 3), (("t", 3),))
    snapshot = built([Entity("c", "C", EntityKind.CONCEPT), Entity("e", "E"), row, Member("e", "c")])
    assert snapshot.texts.take(snapshot.entity_id[snapshot.arrays.get("con.entity")]) == ["c"]
