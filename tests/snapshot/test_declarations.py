"""Who declares an entity, and as what: what servers keep of it as text comes back as it was."""

from __future__ import annotations

import condgraph
from condgraph.engine.facts import Entity
from condgraph.engine.snapshot.declared import read_entity, texts_of


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
