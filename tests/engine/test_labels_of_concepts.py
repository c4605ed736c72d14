"""What a load decides about labels of concepts on Neo4j, and what it says: without a server. What
servers make of it is in `tests/matrix/test_neo4j_labels.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import pytest
from neo4j.exceptions import Forbidden

import condgraph
from condgraph.cypher.connection import Connection
from condgraph.cypher.labels import Labels, begun_otherwise, first, further, is_wanted
from condgraph.cypher.load.write import RowMaker
from condgraph.engine.changes import Change
from condgraph.engine.errors import StoreError
from condgraph.engine.facts import Item, Member, Ref, Statement
from condgraph.engine.identity import content_digest
from condgraph.engine.snapshot.build import Builder
from condgraph.engine.snapshot.layout import lay_out
from condgraph.engine.snapshot.snapshot import Snapshot
from tests.support.world import world


def graph(*items: Item) -> Snapshot:
    with condgraph.open() as local:
        local.add(list(items), source="s")
        return local.current


class Server:
    """The answers of a server with nothing of others, whose user may do what is not `refused`: roles
    are of the Enterprise Edition alone.
    """

    def __init__(self, *refused: str) -> None:
        self.refused, self.tried = refused, list[list[str]]()

    def ask(self, text: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        self.check(text)
        return [] if text.startswith("SHOW") else [{"count": 0}]

    def check(self, text: str) -> None:
        if any(one in text for one in self.refused):
            raise StoreError("neo4j://x refuses: not allowed") from Forbidden._hydrate_neo4j(
                code="Neo.ClientError.Security.Forbidden", message="not allowed"
            )

    def transaction(self, work: Callable[[Any], None]) -> None:
        self.rolled_back = False
        work(self)
        assert self.rolled_back

    def run(self, text: str, parameters: dict[str, Any]) -> None:
        self.check(text)
        self.tried.append(parameters["labels"])

    def rollback(self) -> None:
        self.rolled_back = True


def connected(*refused: str) -> tuple[Server, Connection]:
    server = Server(*refused)
    return server, cast(Connection, server)


def complete(snapshot: Snapshot, *names: str) -> dict[str, Any]:
    """What the node of a graph says whose entities carry some labels."""
    return {"content": "c", "complete": True, "labels": json.dumps(Labels(snapshot, set(names)).counts())}


@pytest.mark.parametrize("refused", ["CREATE", "SHOW CONSTRAINTS"])
def test_who_may_not_write_a_label_loads_without_it(refused: str) -> None:
    """And is told: such a load would end in the middle."""
    before = graph(Member("a", "person"))
    after = graph(Member("a", "person"), Member("b", "king"))
    connection = connected(refused)[1]
    labelling = further(connection, complete(before, "person"), before, after, wanted=True)
    assert labelling.after == ("person",)
    assert labelling.remarks == ("no further concept becomes a label: neo4j://x refuses: not allowed",)
    assert first(connection, {}, after).after == ()
    # With nothing new nobody is asked.
    server, connection = connected("CREATE", "SHOW")
    assert further(connection, complete(before, "person"), before, before, wanted=True).remarks == ()
    server, connection = connected()
    assert further(connection, complete(before, "person"), before, after, wanted=True).after == ("king", "person")
    assert server.tried == [["king"]]


def test_other_failures_are_raised() -> None:
    class Gone(Server):
        def check(self, text: str) -> None:
            raise StoreError("no server answers")

    with pytest.raises(StoreError, match="no server answers"):
        first(cast(Connection, Gone()), {}, graph(Member("a", "person")))


def test_what_an_earlier_version_added_gets_its_labels() -> None:
    """That version wrote no labels, and left what the graph's node said of them."""
    first_one = graph(Member("a", "person"))
    added = graph(Member("a", "person"), Member("b", "person"))
    now = graph(Member("a", "person"), Member("b", "person"), Statement("c", "knows", Ref("a")))
    about = complete(first_one, "person")
    for previous, ids in ((added, ["a", "b"]), (first_one, [])):
        labelling = further(connected()[1], about, previous, now, wanted=True)
        assert labelling.sure is not bool(ids)
        assert sorted(now.ident(int(number)) for number in labelling.changed(previous, now)) == ids


def test_why_a_concept_is_no_label_is_said_when_it_comes() -> None:
    """Also where no label changes; and once."""
    before = graph(Member("a", "person"))
    after = graph(Member("a", "person"), Member("b", "CondgraphEntity"))
    labelling = further(connected()[1], complete(before, "person"), before, after, wanted=True)
    assert labelling.after == ("person",)
    assert [remark.partition(" is no label")[0] for remark in labelling.remarks] == ["the concept 'CondgraphEntity'"]
    assert not further(connected()[1], complete(after, "person"), after, after, wanted=True).remarks
    assert len(first(connected()[1], {}, graph(Member("b", "CondgraphEntity"))).remarks) == 1


def test_a_first_load_goes_on_as_it_was_begun_and_says_so() -> None:
    begun = {"loading": "x", "labelling": ["person"]}
    assert is_wanted(connected()[1], begun, False)
    (said,) = begun_otherwise(asked=False, wanted=True)
    assert "begun with labels of concepts" in said
    assert "graph.label(False)" in said
    for asked in (None, True):
        assert not begun_otherwise(asked=asked, wanted=True)


def test_nothing_added_leaves_a_graph_as_it_is() -> None:
    """As `graph.label()` does: what others took away meanwhile must not come back."""
    nothing = Snapshot.of(*lay_out(Builder()))
    previous = world().current
    same = Change().joined(previous, nothing)
    assert content_digest(same) == content_digest(previous)
    kinds = {batch.kind for batch in RowMaker(same, previous).batches()}
    assert kinds <= {"sources", "predicates"}
