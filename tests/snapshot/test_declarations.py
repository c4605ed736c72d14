"""Who declares an entity, and as what: what servers keep of it as text comes back as it was."""

from __future__ import annotations

import condgraph
from condgraph.engine.facts import Entity, EntityKind
from condgraph.engine.snapshot.build import read_entity, texts_of


def test_each_source_keeps_the_name_that_it_gives() -> None:
    """One source names an entity by its id, another by a name of its own."""
    graph = condgraph.open("memory:")
    graph.add([Entity("q1", "Ann"), Entity("q3", "q3")], source="a")
    graph.add([Entity("q3", "Bob")], source="b")
    texts = texts_of(graph.current)
    found = {
        entity.id: [(one.item, one.sources) for one in read_entity(entity, None, text, ["a", "b"], known=True)]
        for entity, text in ((graph.current.entity(number), text) for number, text in texts.items())
    }
    assert found == {"q3": [(Entity("q3", "q3"), (("a", 0),)), (Entity("q3", "Bob"), (("b", 0),))]}


def test_who_declares_an_entity_that_a_server_says_nothing_of() -> None:
    """One source has declared it; of several, in a graph that says who declared what, the first that
    gives it a name. Where the graph does not say, it is declared by nobody in particular.
    """
    unnamed, named, row = Entity("e", "e"), Entity("e", "Eve"), Entity("t:3", "t:3", EntityKind.ROW, 3)

    def read(entity: Entity, sources: list[str], *, known: bool, place: str | None = None) -> list[tuple[tuple[str, int], ...]]:
        return [one.sources for one in read_entity(entity, place, None, sources, known=known)]

    for known in (False, True):
        assert read(unnamed, ["a"], known=known) == [(("a", 0),)]
        assert read(unnamed, [], known=known) == [()]
        assert read(row, ["a", "b"], known=known, place="t") == [(("t", 3),)]
    assert read(named, ["b", "a"], known=True) == [(("b", 0),)]
    assert read(unnamed, ["a", "b"], known=True) == []
    assert read(unnamed, ["a", "b"], known=False) == read(named, ["a", "b"], known=False) == [()]
