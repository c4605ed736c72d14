"""Claims of FactKG's five kinds, made from the lines of a file of statements, half of them false.

Truth is by construction: a false claim has one object changed for another one that the predicate
has elsewhere, and that its subject does not have. `excludes` says by counting lines whether the
graph may refute a triple (`docs/reference/claims.md`). Nothing here is code of the package.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

#: Predicates that are memberships in the graph; claims are of others.
LINKS = ("instance of", "subclass of")
KINDS = ("one hop", "conjunction", "existence", "multi-hop", "negation")
Triple = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Made:
    """A claim with its kind, whether it is true, and the triple that decides, by ids."""

    kind: str
    true: bool
    triples: tuple[Triple, ...]
    decides: Triple


class Lines:
    """The statements of `derived_labelled_statements.tsv`: subject, predicate, object with labels,
    then qualifiers.
    """

    def __init__(self, path: Path) -> None:
        self.names: dict[str, str] = {}
        self.objects: dict[tuple[str, str], set[str]] = defaultdict(set)
        self.lines: dict[tuple[str, str], list[Sequence[str]]] = defaultdict(list)
        self.subjects: dict[str, set[str]] = defaultdict(set)
        self.range: dict[str, set[str]] = defaultdict(set)
        self.joined: set[tuple[str, str]] = set()
        self.predicates: dict[str, list[str]] = defaultdict(list)
        self.count: dict[str, set[Sequence[str]]] = defaultdict(set)
        for line in path.read_text(encoding="utf-8").splitlines():
            subject, name, _, predicate, thing, label, *rest = line.split("\t")
            self.names[subject], self.names[thing] = name, label
            self.objects[subject, predicate].add(thing)
            self.lines[subject, predicate].append((thing, *sorted(rest)))
            self.count[predicate].add((subject, thing, *sorted(rest)))
            self.subjects[predicate].add(subject)
            self.range[predicate].add(thing)
            self.joined |= {(subject, thing), (thing, subject)}
            self.predicates[subject].append(predicate)
        uses: dict[str, int] = defaultdict(int)
        for name in self.names.values():
            uses[name] += 1
        #: Entities whose names no other one has; claims are about these.
        self.plain = {ident for ident, name in self.names.items() if uses[name] == 1 and name.strip() == name}

    def excludes(self, triple: Triple) -> bool:
        """Whether a triple that is not stated has a predicate of one value, and another value stands
        there, for good, that is joined to the claimed one by no statement.
        """
        subject, predicate, thing = triple
        many, subjects = len(self.count[predicate]), len(self.subjects[predicate])
        if subjects < 30 or (many - subjects) * 100 > many:
            return False
        found = self.lines[subject, predicate]
        times = ("start time", "end time", "point in time")
        timed = any(rest.endswith(tuple(f"={time}" for time in times)) for line in found for rest in line[1::2])
        return bool(found) and not timed and not any((line[0], thing) in self.joined for line in found)


def claims(lines: Lines, number: int, seed: int) -> list[Made]:
    """So many claims of each kind, every second one false."""
    rng = random.Random(seed)
    stated = sorted((s, p, o) for (s, p), things in lines.objects.items() for o in things if p not in LINKS)
    stated = [one for one in stated if one[0] in lines.plain and one[2] in lines.plain]
    ranges = {predicate: sorted(things & lines.plain) for predicate, things in lines.range.items()}
    found: list[Made] = []

    def other(subject: str, predicate: str) -> str | None:
        free = [rng.choice(ranges[predicate]) for _ in range(20)]
        return next((one for one in free if one not in lines.objects[subject, predicate] and one != subject), None)

    def made(kind: str, true: bool) -> Made | None:
        s, p, o = rng.choice(stated)
        name = lines.names
        if kind in ("one hop", "negation"):
            wrong = o if true is (kind == "one hop") else other(s, p)
            if wrong is None:
                return None
            relation = p if kind == "one hop" else f"NOT {p}"
            return Made(kind, true, ((name[s], relation, name[wrong]),), (s, p, wrong))
        if kind == "conjunction":
            more = [
                (s, q, t) for q in set(lines.predicates[s]) for t in lines.objects[s, q] if (q, t) != (p, o) and t in lines.plain
            ]
            more = sorted(one for one in more if one[1] not in LINKS)
            last = o if true else other(s, p)
            if not more or last is None:
                return None
            chosen = [*rng.sample(more, min(len(more), rng.choice((1, 2)))), (s, p, last)]
            return Made(kind, true, tuple((name[a], b, name[c]) for a, b, c in chosen), (s, p, last))
        if kind == "existence":
            if not true:
                # What things of the kind of s have, and s has not.
                alike = [t for q in sorted(set(lines.predicates[s])) for t in sorted(lines.objects[s, q])][:50]
                lacks = sorted(q for one in alike for q in lines.predicates.get(one, ()) if not lines.objects.get((s, q)))
                lacks = [q for q in lacks if q not in LINKS]
                if not lacks:
                    return None
                p = rng.choice(lacks)
            return Made(kind, true, ((name[s], p, "UNKNOWN thing 1"),), (s, p, ""))
        onward = sorted((q, t) for q in set(lines.predicates.get(o, ())) for t in lines.objects[o, q] if t in lines.plain)
        onward = [(q, t) for q, t in onward if q not in LINKS]
        if not onward:
            return None
        q, t = rng.choice(onward)
        if not true:
            reached = {end for middle in lines.objects[s, p] for end in lines.objects.get((middle, q), ())}
            ends = [rng.choice(ranges[q]) for _ in range(20)]
            t = next((one for one in ends if one not in reached), "")
            if not t:
                return None
        return Made(kind, true, ((name[s], p, "UNKNOWN thing 1"), ("UNKNOWN thing 1", q, name[t])), (o, q, t))

    for kind in KINDS:
        while sum(one.kind == kind for one in found) < number:
            true = sum(one.kind == kind for one in found) % 2 == 0
            one = made(kind, true)
            if one is not None:
                found.append(one)
    return found
