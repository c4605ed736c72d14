"""Which concepts become labels on Neo4j, and what later loads do about them, without a server; and
the style file of Neo4j Browser.
"""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import condgraph
from condgraph.cypher.browser import COLOURS, queries, style
from condgraph.cypher.labels import LIMIT, Labelling, Labels, chosen, usable
from condgraph.cypher.load.write import RowMaker
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Statement, Subclass
from condgraph.graph import Graph


def graph_of(*items: Item) -> Graph:
    graph = condgraph.open()
    graph.add([*items, Statement("a", "knows", Ref("b"), (("since", "x"),))], source="s")
    return graph


def test_labels_are_the_direct_concepts_by_name() -> None:
    snapshot = graph_of(
        Entity("p", "person", EntityKind.CONCEPT),
        Entity("q", "person", EntityKind.CONCEPT),
        Subclass("p", "being"),
        *(Member("a", "p"), Member("a", "q"), Member("b", "q"), Member("b", "king"), Member("p", "king")),
    ).current
    labels = Labels(snapshot)
    assert labels.counts() == {"person": 2, "king": 1}
    every = np.arange(snapshot.entities)
    found = {snapshot.ident(number): sorted(some) for number, some in zip(every.tolist(), labels.of(every), strict=True) if some}
    assert found == {"a": ["person"], "b": ["king", "person"]}
    assert [set(some) for some in Labels(snapshot, {"king"}).of(every) if some] == [{"king"}]
    assert Labels(snapshot, set()).counts() == {}
    assert Labels(graph_of().current).of(np.arange(2)) == [[], []]


def test_names_that_cannot_be_labels_are_said() -> None:
    names, remarks = chosen(["film", "condgraphvalue", "Person", "", "a\x1fb", "x" * 1_001], taken={"Person"})
    assert names == ["film"]
    assert len(remarks) == 2
    assert remarks[0].startswith("the concepts 'condgraphvalue', '', 'a\\x1fb', 'xxx")
    assert remarks[1].startswith("the concept 'Person' is no label: other nodes")
    names, remarks = chosen([f"c{number:03}" for number in range(LIMIT + 5)])
    assert names == [f"c{number:03}" for number in range(LIMIT)]
    assert remarks == [f"5 of {LIMIT + 5} concepts are not labels: a graph has at most {LIMIT}, the most frequent"]


@given(st.text(max_size=20))
def test_a_label_is_never_of_the_layout(name: str) -> None:
    assert not usable("Condgraph" + name)
    assert usable(name + "x") or not name.isprintable() or name.lower().startswith("condgraph")


def test_what_changes_is_written_and_nothing_else() -> None:
    before, after = (
        graph_of(Member("a", "person"), Member("b", "person"), Member("gone", "person")).current,
        graph_of(Member("a", "person"), Member("b", "king"), Member("new", "king"), Entity("c", "C")).current,
    )

    def written(labelling: Labelling) -> dict[str, set[str]]:
        found = {}
        for batch in RowMaker(after, before, labelling).batches():
            if batch.kind == "labels":
                assert batch.ids == labelling.every
                found |= {handle: {batch.ids[place] for place in places} for handle, places in batch.rows}
        return found

    both = ("king", "person")
    assert written(Labelling(both, ("person",))) == {"b": {"king"}}
    # A graph that had none, and one that is to have none.
    assert written(Labelling(both)) == {"a": {"person"}, "b": {"king"}}
    assert written(Labelling(None, ("person",))) == {"a": set(), "b": set()}
    assert written(Labelling()) == {}
    # After a load that was ended nobody knows which of them were written.
    assert written(Labelling(both, both, sure=False)) == {"a": {"person"}, "b": {"king"}}
    created = {
        row[0]: row[-1]
        for batch in RowMaker(after, before, Labelling(both)).batches()
        if batch.kind == "entities"
        for row in batch.rows
    }
    assert created == {"new": ["king"], "king": ["CondgraphConcept"], "c": []}
    assert json.loads(Labelling(both).stated(after) or "") == {"king": 2, "person": 1}
    assert Labelling().stated(after) is None


def test_a_style_has_a_colour_for_each_common_concept() -> None:
    labels = ["head of state", "St. Kitts", 'quo"te', "back\\slash", *(f"c{number}" for number in range(30))]
    rules = json.loads(style(labels))
    coloured = {rules[name]["color"] for name in rules if name.startswith("node.") and not name.startswith("node.Condgraph")}
    assert coloured == set(COLOURS)
    # Browser splits selectors at dots that have no backslash before them.
    assert rules["node.St\\. Kitts"]["color"] == COLOURS[1]
    assert not any("slash" in name for name in rules)
    assert list(rules).index("node.CondgraphEntity") < list(rules).index("node.head of state")
    small = [int(rules[f"node.Condgraph{one}"]["diameter"][:-2]) for one in ("Statement", "Qualifier", "Value")]
    assert max(small) < int(rules["node.CondgraphEntity"]["diameter"][:-2])


def test_names_cannot_break_out_of_queries() -> None:
    odd = "it's `odd` // } \\u0027) DETACH DELETE n //"
    graph = graph_of(Member("a", odd), Member("b", "it's `odd`"), Statement("a", odd, Ref("b"), (("q", "x"),)))
    for labels in (None, Labels(graph.current).counts()):
        found = queries(graph.schema(), "it's", labels)
        assert any("it's `odd`" in title for title in found)
        for title, text in found.items():
            assert "DETACH" not in title + text
            assert "graph: 'it\\'s'" in text
