"""Random single changes, compared with a plain model of them; the process that makes them is killed at times."""

from __future__ import annotations

import multiprocessing
import random
import time
from typing import Any

import condgraph
from condgraph import Entity, Member, Quantity, Ref, Statement, Time
from condgraph.engine.snapshot.readback import items

ENTITIES = [f"e{i}" for i in range(9)]
RELATIONS, ATTRIBUTES, KEYS = ["knows", "near"], ["height", "says", "born"], ["since", "by", "note"]
#: A statement or a membership, in the form that JSON has.
Fact = tuple[Any, ...]


def value_of(cell: Any) -> Any:
    kind, content = cell
    return {"ref": Ref, "text": str, "number": Quantity, "year": Time.year}[kind](content)


def item_of(fact: Fact) -> Statement | Member:
    if fact[0] == "member":
        return Member(fact[1], fact[2])
    _, subject, predicate, object_, pairs = fact
    return Statement(subject, predicate, value_of(object_), tuple((key, value_of(value)) for key, value in pairs))


def frozen(fact: Any) -> Fact:
    """Return a fact from JSON as a hashable tuple."""
    if fact[0] == "member":
        return tuple(fact)
    kind, subject, predicate, object_, pairs = fact
    return kind, subject, predicate, tuple(object_), tuple(sorted((key, tuple(cell)) for key, cell in pairs))


def a_fact(dice: random.Random) -> Fact:
    if dice.random() < 0.1:
        return "member", dice.choice(ENTITIES), dice.choice(["c1", "c2"])
    if dice.random() < 0.5:
        predicate, object_ = dice.choice(RELATIONS), ("ref", dice.choice(ENTITIES))
    else:
        predicate = dice.choice(ATTRIBUTES)
        object_ = {
            "height": ("number", dice.randrange(4)), "says": ("text", dice.choice(["a", "b ü", "it's"])),
            "born": ("year", dice.randrange(1990, 1994)),
        }[predicate]  # fmt: skip
    cells: list[tuple[str, Any]] = [
        ("year", dice.randrange(2000, 2003)),
        ("ref", dice.choice(ENTITIES)),
        ("text", dice.choice("xy")),
    ]
    pairs = [(KEYS[at], cells[at]) for at in dice.sample(range(3), dice.choice([0, 0, 0, 1, 2]))]
    return frozen(("statement", dice.choice(ENTITIES), predicate, object_, pairs))


class Model:
    """The content of a graph: facts by source, retracted facts, added facts, and new names."""

    def __init__(self) -> None:
        self.loaded: dict[str, set[Fact]] = {}
        self.named: dict[str, dict[str, str]] = {}
        self.hidden: set[Fact] = set()
        self.added: set[Fact] = set()
        self.renamed: dict[str, str] = {}
        self.edits = 0

    def facts(self) -> set[Fact]:
        loaded = set().union(*self.loaded.values()) if self.loaded else set()
        return (loaded - self.hidden) | self.added

    def names(self) -> dict[str, str]:
        """Return the names of entities that differ from their ids."""
        declared: dict[str, str] = {}
        for named in self.named.values():
            declared = {**named, **declared}
        return {**declared, **self.renamed}

    def do(self, act: dict[str, Any]) -> None:
        kind = act["do"]
        if kind == "load":
            self.loaded[act["source"]] = set(map(frozen, act["facts"]))
            self.named[act["source"]] = act["names"]
        elif kind == "unload":
            del self.loaded[act["source"]], self.named[act["source"]]
        elif kind == "rename":
            self.renamed[act["entity"]] = act["name"]
        else:
            if "old" in act:
                self.hidden.add(frozen(act["old"]))
                self.added.discard(frozen(act["old"]))
            if "new" in act:
                self.added.add(frozen(act["new"]))
        self.edits += kind not in ("load", "unload", "compact", "declare")

    def an_act(self, dice: random.Random, *, more: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return a random change that is possible now."""
        facts = sorted(self.facts(), key=repr)
        while True:
            kind = dice.choices(
                ["add", "retract", "correct", "rename", "load", "unload", *more], [40, 30, 20, 2, 2, 1, *[1] * len(more)]
            )[0]
            if kind == "load":
                named = {item: f"{item.upper()} {dice.randrange(3)}" for item in dice.sample(ENTITIES, 2)}
                # Different names for one entity in two sources are left to another test.
                named_elsewhere = {item for source, names in self.named.items() for item in names if source != "one"} | set(
                    self.renamed
                )
                named = {item: name for item, name in named.items() if item not in named_elsewhere}
                facts_to_load = [a_fact(dice) for _ in range(dice.randrange(4, 15))] + dice.sample(facts, min(3, len(facts)))
                return {
                    "do": kind,
                    "source": dice.choice(["one", "two"]) if not named else "one",
                    "facts": facts_to_load,
                    "names": named,
                }
            if kind == "unload" and len(self.loaded) > 1:
                return {"do": kind, "source": dice.choice(sorted(self.loaded))}
            if kind in more and (kind != "declare" or any(fact[2] == "height" for fact in facts)):
                return {"do": kind}
            if kind == "add":
                new = a_fact(dice)
                if new not in facts:
                    return {"do": kind, "new": new}
            if kind == "retract" and len(facts) > 5:
                return {"do": kind, "old": dice.choice(facts)}
            if kind == "correct":
                old, new = (dice.choice([item for item in facts if item[0] != "member"] or [()]), a_fact(dice))
                if old and new[0] != "member" and new not in facts:
                    return {"do": kind, "old": old, "new": new}
            if kind == "rename":
                mentioned = {item for fact in facts for item in ENTITIES if item in fact[1:3] or ("ref", item) in fact}
                if mentioned:
                    entity = dice.choice(sorted(mentioned))
                    name_now = self.names().get(entity, entity)
                    name = f"{name_now.split(' ')[0]} {self.edits}"
                    if name != name_now:
                        return {"do": kind, "entity": entity, "was": name_now, "name": name}


def act_on(graph: Any, act: dict[str, Any]) -> None:
    """Make a change of `Model.an_act` in a graph."""
    kind = act["do"]
    if kind == "load":
        named = [Entity(entity_id, name) for entity_id, name in act["names"].items()]
        # The name in the first source that names an entity is its name.
        graph.add([*named, *(item_of(frozen(fact)) for fact in act["facts"])], source=act["source"], replace=True, wait=30.0)
    elif kind == "unload":
        graph.unload(act["source"], wait=30.0)
    elif kind == "compact":
        graph.compact()
    elif kind == "declare":
        graph.declare("height", wait=30.0)
    elif kind == "rename":
        graph.correct(Entity(act["entity"], act["was"]), name=act["name"])
    elif kind == "retract" or act.get("new", [""])[0] == "member":
        graph.retract(item_of(frozen(act["old"]))) if kind == "retract" else graph.add(item_of(frozen(act["new"])))
    elif kind == "add":
        graph.add(item_of(frozen(act["new"])), new_type=True)
    else:
        new: Any = item_of(frozen(act["new"]))
        graph.correct(
            item_of(frozen(act["old"])), subject=Ref(new.subject), predicate=new.predicate, object=new.object,
            qualifiers=new.qualifiers, new_type=True,
        )  # fmt: skip


def facts_of(graph: Any) -> tuple[set[str], dict[str, str]]:
    """Return the facts in a graph, in the form of `told`, and the names that are not ids."""
    facts, names = set(), {}
    for sourced in items((graph.snapshot() if "://" in graph.place else graph).current):
        item = getattr(sourced, "item", sourced)
        if isinstance(item, Statement):
            facts.add(told(item))
        elif isinstance(item, Member):
            facts.add(f"{item.entity} in {item.concept}")
        elif isinstance(item, Entity) and item.name != item.id:
            names[item.id] = item.name
    return facts, names


def told(item: Statement | Member) -> str:
    if isinstance(item, Member):
        return f"{item.entity} in {item.concept}"
    pairs = sorted(f"{key}={value!r}" for key, value in item.qualifiers)
    return f"{item.subject} {item.predicate} {item.object!r} {pairs}"


def differences(graph: Any, model: Model) -> list[str]:
    """Return where a graph differs from the model."""
    facts, names = facts_of(graph)
    expected_facts = {told(item_of(fact)) for fact in model.facts()}
    mentioned = {
        item
        for fact in model.facts()
        for item in ENTITIES
        if item in fact[1:3] or any(("ref", item) in part for part in [fact, *fact[4:]])
    }
    mentioned |= {
        item for fact in model.facts() if fact[0] == "statement" for _, cell in fact[4] if cell[0] == "ref" for item in [cell[1]]
    }
    expected = {item: name for item, name in model.names().items() if item in mentioned}
    problems = [f"missing: {item}" for item in sorted(expected_facts - facts)] + [
        f"too much: {item}" for item in sorted(facts - expected_facts)
    ]
    return problems + [
        f"{item} is called {names.get(item)!r}, not {name!r}" for item, name in expected.items() if names.get(item) != name
    ]


def asked(graph: Any, model: Model, dice: random.Random) -> str:
    """Run a random program; describe how its answer differs from the model's, or return an empty text."""
    facts, names = model.facts(), model.names()
    fact = dice.choice([item for item in sorted(facts, key=repr) if item[0] == "statement"])
    _, subject, predicate, object_, _ = fact
    subject_name = names.get(subject, subject)
    matching = [
        item for item in facts if item[0] == "statement" and names.get(item[1], item[1]) == subject_name and item[2] == predicate
    ]
    if object_[0] == "ref":
        program = f"Find({subject_name}) Relate({predicate}, forward) QueryName()"
        expected = sorted({(item[3][1]) for item in matching})
        expected = sorted(names.get(item, item) for item in expected)
    else:
        program = f"Find({subject_name}) QueryAttr({predicate})"
        expected = sorted({str(item[3][1]) for item in matching})
    actual = sorted(graph.kopl(program).texts)
    if object_[0] != "ref":
        actual = sorted(set(actual))
    return "" if actual == expected else f"{program}: {actual}, not {expected}"


def serve(pipe: Any, place: str, options: dict[str, str]) -> None:
    """Make the changes received through a pipe."""
    graph = condgraph.open(place, **options)  # type: ignore[arg-type]
    while True:
        try:
            act_on(graph, pipe.recv())
            pipe.send("done")
        except EOFError:
            return
        except Exception as error:  # noqa: BLE001 - the test reads it
            pipe.send(repr(error))


class Writer:
    """A process that makes changes; the next one is forked from a process with everything imported."""

    def __init__(self, place: str, options: dict[str, str]) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["tests.support.single_changes"])
        self._place, self._options = place, options
        self._process: Any = None
        self._pipe: Any = None
        self.kills = 0

    def send(self, act: dict[str, Any]) -> None:
        if self._process is None:
            self._pipe, other = self._context.Pipe()
            self._process = self._context.Process(target=serve, args=(other, self._place, self._options), daemon=True)
            self._process.start()
            other.close()
        self._pipe.send(act)

    def reply(self) -> str:
        return str(self._pipe.recv())

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()
        self._process = None
        self.kills += 1

    def close(self) -> None:
        if self._process is not None:
            self.kill()


def run(
    place: str, options: dict[str, str], *, seed: int, acts: int, kills: float, more: tuple[str, ...] = (), within: float = 0.02
) -> dict[str, int]:
    """Make `acts` random changes; kill a share `kills` of them up to `within` seconds after they were sent. After each,
    compare the graph with the model, and run a program. Return the numbers of changes by kind.
    """
    dice, model, writer, counts = random.Random(seed), Model(), Writer(place, options), dict[str, int]()
    graph: Any = condgraph.open(place, **options)  # type: ignore[arg-type]
    try:
        for number in range(acts):
            act = model.an_act(dice, more=more) if model.loaded else {**model.an_act(dice), "do": "load", "source": "one"}
            if not model.loaded:
                act = {"do": "load", "source": "one", "facts": [a_fact(dice) for _ in range(12)], "names": {"e0": "E Zero"}}
            if place.startswith("duckdb"):
                # A reading process locks the file.
                graph.close()
            writer.send(act)
            killed = dice.random() < kills and act["do"] not in ("load", "unload", "compact", "declare")
            if killed:
                time.sleep(dice.random() * within)
                writer.kill()
                graph.refresh()
                if len(graph.edits()) > model.edits:
                    model.do(act)
            else:
                reply = writer.reply()
                assert reply == "done", (number, act, reply)
                model.do(act)
                graph.refresh()
            counts[act["do"]] = counts.get(act["do"], 0) + 1
            assert number % 50 or len(graph.edits()) == model.edits, (number, act, killed)
            problems = differences(graph, model) or [line for line in [asked(graph, model, dice)] if line]
            assert not problems, (number, act, killed, problems)
        return {**counts, "killed": writer.kills}
    finally:
        writer.close()
        graph.close()
