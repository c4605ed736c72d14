"""Random edits of the sources of a graph, and the resulting sources loaded from scratch: every store must hold the
same.
"""

from __future__ import annotations

import io
import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import condgraph
from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Statement, Subclass
from condgraph.engine.values import Quantity, Time
from condgraph.graph import Graph

#: Names of sources: one is a prefix of another, one has a slash, one looks like a part of an id.
NAMES = ("sales", "sales/old", "sales+2", "kb", "Ünï ❤")


def exported(graph: Graph) -> list[str]:
    """Return everything in a graph, one line each; only the sources keep their order."""
    stream = io.StringIO()
    graph.export(stream)
    head, *lines = stream.getvalue().splitlines()
    return [json.dumps(json.loads(head)["sources"]), *sorted(lines)]


def items(dice: random.Random) -> list[Any]:
    """Return random items that overlap between sources: with other names, texts and qualifiers."""
    result: list[Any] = []
    for number in range(dice.randint(1, 12)):
        entity_id = f"e{dice.randrange(8)}"
        row = number + 1
        kind = dice.randrange(9)
        if kind == 0:
            result.append(Entity(entity_id, dice.choice(["Ann", "Bob", entity_id])))
        elif kind == 1:
            result.append(Member(entity_id, dice.choice(["c1", "c2"]), row))
        elif kind == 2:
            result.append(Subclass(dice.choice(["c1", "c2"]), "c3", row))
        elif kind == 3:
            result.append(Entity(dice.choice(["c1", "alone", "e1"]), dice.choice(["Class", "c1"]), EntityKind.CONCEPT))
        elif kind == 4:
            result.append(
                Statement(entity_id, "height", Quantity(dice.randrange(3), "m"), (), row, dice.choice([None, "1.0 m", "one"]))
            )
        elif kind == 5:
            qualifiers = dice.sample([("since", Time.year(1990)), ("by", Ref("e7")), ("note", "x")], dice.randrange(3))
            result.append(Statement(entity_id, "knows", Ref(f"e{dice.randrange(8)}"), tuple(qualifiers), row))
        elif kind == 6:
            result.append(Statement(entity_id, "says", dice.choice(["a  b", "a b", "c"]), (), row))
        elif kind == 7:
            result.append(Entity(entity_id, dice.choice([entity_id, "Row"]), EntityKind.ROW, row))
        else:
            result.append(Entity("only declared", "only declared"))
    return result


def table(dice: random.Random, *, keyed: bool) -> str:
    rows = []
    for number in range(dice.randint(1, 4)):
        item = f"k{number}" if keyed else dice.choice("abcd")
        rows.append(f"{item},{dice.randrange(5)},{dice.choice('xy')}")
    return "item,price,place\n" + "\n".join(rows) + "\n"


def turtle(dice: random.Random) -> str:
    lines = ["@prefix x: <http://x/> .", "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."]
    for _ in range(dice.randint(1, 4)):
        lines.append(f"x:e{dice.randrange(3)} x:knows [ x:age {dice.randrange(3)} ; x:knows _:b{dice.randrange(2)} ] .")
        lines.append(f'x:e{dice.randrange(3)} rdfs:label "{dice.choice(["One", "Two"])}" .')
    return "\n".join(lines) + "\n"


@dataclass
class Edits:
    """The state of the sources of a graph after random edits."""

    dice: random.Random
    folder: Path
    #: By source, in order: how it was loaded and what was appended.
    sources: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    made: int = 0

    def given(self, name: str) -> dict[str, Any]:
        """Return something to load, of the format that goes with the name."""
        self.made += 1
        kind = {"kb": "items", "Ünï ❤": "rdf"}.get(name, "table")
        if kind == "items":
            return {"items": items(self.dice)}
        suffix = "ttl" if kind == "rdf" else "csv"
        file = self.folder / f"{self.made}.{suffix}"
        file.write_text(turtle(self.dice) if kind == "rdf" else table(self.dice, keyed=name == "sales/old"))
        return {"file": file, "options": {"key": "item"} if name == "sales/old" else {}}

    def load(self, graph: Graph, name: str, given: dict[str, Any], **how: Any) -> None:
        if "items" in given:
            graph.add(given["items"], source=name, **({} if how.get("append") else how))
        else:
            graph.load(given["file"], name=name, **given["options"], **how)

    def edit(self, graph: Graph) -> str:
        """Make one edit; return its description."""
        absent = [name for name in NAMES if name not in self.sources]
        action = self.dice.choice(["load"] if not self.sources else ["replace", "replace", "append", "unload", "load"])
        if action == "load" and not absent:
            action = "replace"
        name = self.dice.choice(absent if action == "load" else list(self.sources))
        if action == "unload":
            graph.unload(name)
            del self.sources[name]
            return f"unload {name}"
        load = self.given(name)
        self.load(graph, name, load, **({} if action == "load" else {action: True}))
        if action == "append":
            self.sources[name].append(load)
        else:
            self.sources[name] = [load]
        return f"{action} {name}"

    def fresh(self) -> Graph:
        """Return a graph with the same sources, loaded from scratch."""
        graph = condgraph.open()
        for name, loads in self.sources.items():
            for number, load in enumerate(loads):
                self.load(graph, name, load, **({"append": True} if number else {}))
        return graph
