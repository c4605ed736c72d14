"""Random single changes next to a plain model of what they do, made by a process that is killed now and then."""

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
#: A statement, a membership, as JSON has them.
Fact = tuple[Any, ...]


def value_of(cell: Any) -> Any:
    kind, one = cell
    return {"ref": Ref, "text": str, "number": Quantity, "year": Time.year}[kind](one)


def item_of(fact: Fact) -> Statement | Member:
    if fact[0] == "member":
        return Member(fact[1], fact[2])
    _, subject, predicate, thing, pairs = fact
    return Statement(subject, predicate, value_of(thing), tuple((key, value_of(one)) for key, one in pairs))


def frozen(fact: Any) -> Fact:
    """A fact of JSON as one that can be in a set."""
    if fact[0] == "member":
        return tuple(fact)
    kind, subject, predicate, thing, pairs = fact
    return kind, subject, predicate, tuple(thing), tuple(sorted((key, tuple(one)) for key, one in pairs))


def a_fact(dice: random.Random) -> Fact:
    if dice.random() < 0.1:
        return "member", dice.choice(ENTITIES), dice.choice(["c1", "c2"])
    if dice.random() < 0.5:
        predicate, thing = dice.choice(RELATIONS), ("ref", dice.choice(ENTITIES))
    else:
        predicate = dice.choice(ATTRIBUTES)
        thing = {
            "height": ("number", dice.randrange(4)), "says": ("text", dice.choice(["a", "b ü", "it's"])),
            "born": ("year", dice.randrange(1990, 1994)),
        }[predicate]  # fmt: skip
    cells: list[tuple[str, Any]] = [
        ("year", dice.randrange(2000, 2003)),
        ("ref", dice.choice(ENTITIES)),
        ("text", dice.choice("xy")),
    ]
    pairs = [(KEYS[at], cells[at]) for at in dice.sample(range(3), dice.choice([0, 0, 0, 1, 2]))]
    return frozen(("statement", dice.choice(ENTITIES), predicate, thing, pairs))


class Model:
    """What a graph holds: facts by source, what was retracted, what was added, and names that were given."""

    def __init__(self) -> None:
        self.loaded: dict[str, set[Fact]] = {}
        self.named: dict[str, dict[str, str]] = {}
        self.hidden: set[Fact] = set()
        self.added: set[Fact] = set()
        self.renamed: dict[str, str] = {}
        self.edits = 0

    def facts(self) -> set[Fact]:
        every = set().union(*self.loaded.values()) if self.loaded else set()
        return (every - self.hidden) | self.added

    def names(self) -> dict[str, str]:
        """The names of entities that are not their ids."""
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
        """Something that can be done now."""
        facts = sorted(self.facts(), key=repr)
        while True:
            kind = dice.choices(
                ["add", "retract", "correct", "rename", "load", "unload", *more], [40, 30, 20, 2, 2, 1, *[1] * len(more)]
            )[0]
            if kind == "load":
                named = {one: f"{one.upper()} {dice.randrange(3)}" for one in dice.sample(ENTITIES, 2)}
                # Sources that call one entity otherwise are another test's.
                others = {one for source, names in self.named.items() for one in names if source != "one"} | set(self.renamed)
                named = {one: name for one, name in named.items() if one not in others}
                listed = [a_fact(dice) for _ in range(dice.randrange(4, 15))] + dice.sample(facts, min(3, len(facts)))
                return {"do": kind, "source": dice.choice(["one", "two"]) if not named else "one", "facts": listed, "names": named}
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
                old, new = (dice.choice([one for one in facts if one[0] != "member"] or [()]), a_fact(dice))
                if old and new[0] != "member" and new not in facts:
                    return {"do": kind, "old": old, "new": new}
            if kind == "rename":
                known = {one for fact in facts for one in ENTITIES if one in fact[1:3] or ("ref", one) in fact}
                if known:
                    entity = dice.choice(sorted(known))
                    now = self.names().get(entity, entity)
                    name = f"{now.split(' ')[0]} {self.edits}"
                    if name != now:
                        return {"do": kind, "entity": entity, "was": now, "name": name}


def act_on(graph: Any, act: dict[str, Any]) -> None:
    """Do something of `Model.an_act` to a graph."""
    kind = act["do"]
    if kind == "load":
        named = [Entity(one, name) for one, name in act["names"].items()]
        # The first source that names an entity does so for all.
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
    """What a graph holds, as `told` has it, and the names that are not ids."""
    facts, names = set(), {}
    for one in items((graph.snapshot() if "://" in graph.place else graph).current):
        item = getattr(one, "item", one)
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
    """Where a graph is not the model."""
    facts, names = facts_of(graph)
    wanted = {told(item_of(fact)) for fact in model.facts()}
    there = {
        one
        for fact in model.facts()
        for one in ENTITIES
        if one in fact[1:3] or any(("ref", one) in part for part in [fact, *fact[4:]])
    }
    there |= {
        one for fact in model.facts() if fact[0] == "statement" for _, cell in fact[4] if cell[0] == "ref" for one in [cell[1]]
    }
    expected = {one: name for one, name in model.names().items() if one in there}
    wrong = [f"missing: {one}" for one in sorted(wanted - facts)] + [f"too much: {one}" for one in sorted(facts - wanted)]
    return wrong + [f"{one} is called {names.get(one)!r}, not {name!r}" for one, name in expected.items() if names.get(one) != name]


def asked(graph: Any, model: Model, dice: random.Random) -> str:
    """Where a random program is not answered as by the model; empty where it is."""
    facts, names = model.facts(), model.names()
    fact = dice.choice([one for one in sorted(facts, key=repr) if one[0] == "statement"])
    _, subject, predicate, thing, _ = fact
    called = names.get(subject, subject)
    same = [one for one in facts if one[0] == "statement" and names.get(one[1], one[1]) == called and one[2] == predicate]
    if thing[0] == "ref":
        program = f"Find({called}) Relate({predicate}, forward) QueryName()"
        wanted = sorted({(one[3][1]) for one in same})
        wanted = sorted(names.get(one, one) for one in wanted)
    else:
        program = f"Find({called}) QueryAttr({predicate})"
        wanted = sorted({str(one[3][1]) for one in same})
    got = sorted(graph.kopl(program).texts)
    if thing[0] != "ref":
        got = sorted(set(got))
    return "" if got == wanted else f"{program}: {got}, not {wanted}"


def serve(pipe: Any, place: str, options: dict[str, str]) -> None:
    """Make the changes that come through a pipe."""
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
    """A process that makes changes; the next one is forked of a process that has everything imported."""

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
    """Make so many random changes, of which a part is killed within so many seconds after it was sent; after each the graph is
    compared with the model, and asked. What was done, by kind.
    """
    dice, model, writer, done = random.Random(seed), Model(), Writer(place, options), dict[str, int]()
    opened: Any = condgraph.open(place, **options)  # type: ignore[arg-type]
    try:
        for number in range(acts):
            act = model.an_act(dice, more=more) if model.loaded else {**model.an_act(dice), "do": "load", "source": "one"}
            if not model.loaded:
                act = {"do": "load", "source": "one", "facts": [a_fact(dice) for _ in range(12)], "names": {"e0": "E Zero"}}
            if place.startswith("duckdb"):
                # A process that reads holds the file.
                opened.close()
            writer.send(act)
            killed = dice.random() < kills and act["do"] not in ("load", "unload", "compact", "declare")
            if killed:
                time.sleep(dice.random() * within)
                writer.kill()
                opened.refresh()
                if len(opened.edits()) > model.edits:
                    model.do(act)
            else:
                reply = writer.reply()
                assert reply == "done", (number, act, reply)
                model.do(act)
                opened.refresh()
            done[act["do"]] = done.get(act["do"], 0) + 1
            assert number % 50 or len(opened.edits()) == model.edits, (number, act, killed)
            wrong = differences(opened, model) or [line for line in [asked(opened, model, dice)] if line]
            assert not wrong, (number, act, killed, wrong)
        return {**done, "killed": writer.kills}
    finally:
        writer.close()
        opened.close()
