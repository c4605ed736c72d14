"""Random edits of the sources of a graph, and the same sources loaded afresh: what every store has
to hold alike.
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

#: One is what another begins with, one has a slash, one looks like what ids are made of.
NAMES = ("sales", "sales/old", "sales+2", "kb", "Ünï ❤")


def exported(graph: Graph) -> list[str]:
    """Everything a graph holds, a line each, without an order but that of its sources."""
    stream = io.StringIO()
    graph.export(stream)
    head, *lines = stream.getvalue().splitlines()
    return [json.dumps(json.loads(head)["sources"]), *sorted(lines)]


def items(dice: random.Random) -> list[Any]:
    """Facts that other sources say as well: under other names, with other texts and qualifiers."""
    found: list[Any] = []
    for number in range(dice.randint(1, 12)):
        one = f"e{dice.randrange(8)}"
        row = number + 1
        kind = dice.randrange(9)
        if kind == 0:
            found.append(Entity(one, dice.choice(["Ann", "Bob", one])))
        elif kind == 1:
            found.append(Member(one, dice.choice(["c1", "c2"]), row))
        elif kind == 2:
            found.append(Subclass(dice.choice(["c1", "c2"]), "c3", row))
        elif kind == 3:
            found.append(Entity(dice.choice(["c1", "alone", "e1"]), dice.choice(["Class", "c1"]), EntityKind.CONCEPT))
        elif kind == 4:
            found.append(Statement(one, "height", Quantity(dice.randrange(3), "m"), (), row, dice.choice([None, "1.0 m", "one"])))
        elif kind == 5:
            qualifiers = dice.sample([("since", Time.year(1990)), ("by", Ref("e7")), ("note", "x")], dice.randrange(3))
            found.append(Statement(one, "knows", Ref(f"e{dice.randrange(8)}"), tuple(qualifiers), row))
        elif kind == 6:
            found.append(Statement(one, "says", dice.choice(["a  b", "a b", "c"]), (), row))
        elif kind == 7:
            found.append(Entity(one, dice.choice([one, "Row"]), EntityKind.ROW, row))
        else:
            found.append(Entity("only declared", "only declared"))
    return found


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
    """What the sources of a graph are, after some random edits of them."""

    dice: random.Random
    folder: Path
    #: By source, in order: how it was loaded, and then added to.
    sources: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    made: int = 0

    def given(self, name: str) -> dict[str, Any]:
        """Something to load, of the kind that goes with the name."""
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
        """One edit; what it was."""
        absent = [name for name in NAMES if name not in self.sources]
        what = self.dice.choice(["load"] if not self.sources else ["replace", "replace", "append", "unload", "load"])
        if what == "load" and not absent:
            what = "replace"
        name = self.dice.choice(absent if what == "load" else list(self.sources))
        if what == "unload":
            graph.unload(name)
            del self.sources[name]
            return f"unload {name}"
        given = self.given(name)
        self.load(graph, name, given, **({} if what == "load" else {what: True}))
        if what == "append":
            self.sources[name].append(given)
        else:
            self.sources[name] = [given]
        return f"{what} {name}"

    def fresh(self) -> Graph:
        """What should be there, loaded afresh."""
        graph = condgraph.open()
        for name, loads in self.sources.items():
            for number, given in enumerate(loads):
                self.load(graph, name, given, **({"append": True} if number else {}))
        return graph
