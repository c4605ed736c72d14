"""What the tests of asking share: graphs, and models that reply from a script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import condgraph
from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Statement
from condgraph.graph import Graph
from condgraph.samples import FOLDER


class Scripted:
    """A model that gives its replies one after the other, the last one again; `seen` is what it was
    asked.
    """

    def __init__(self, *replies: str | Callable[[Sequence[Any]], str]) -> None:
        self.replies = list(replies)
        self.seen: list[list[dict[str, str]]] = []

    def __call__(self, messages: list[dict[str, str]]) -> str:
        reply = self.replies[min(len(self.seen), len(self.replies) - 1)]
        self.seen.append(messages)
        return reply if isinstance(reply, str) else reply(messages)

    @property
    def told(self) -> str:
        """All that it was shown."""
        return "\n".join(one["content"] for messages in self.seen for one in messages)


def countries() -> Graph:
    """The sample data: a table of mountains, a graph of countries, terms of heads of government."""
    graph = condgraph.open()
    graph.load(FOLDER / "mountains.csv", key="mountain", refs=["country"])
    graph.load(FOLDER / "countries.json")
    graph.load(FOLDER / "governments.tsv")
    return graph


def springfields() -> Graph:
    """Three cities of one name; two have a state, one has a mayor."""
    graph = condgraph.open()
    items = [Entity("city", "city", EntityKind.CONCEPT), Entity("us", "United States")]
    for ident, people in (("s1", "Ohio"), ("s2", "Oregon"), ("s3", None)):
        items.append(Entity(ident, "Springfield"))
        items.append(Member(ident, "city"))  # type: ignore[arg-type]
        if people is not None:
            items += [Entity(people, people), Statement(ident, "state", Ref(people))]  # type: ignore[list-item]
    items.append(Statement("s1", "mayor", "Ann"))  # type: ignore[arg-type]
    graph.add(items, source="cities")
    return graph
