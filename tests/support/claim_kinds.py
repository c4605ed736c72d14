"""Claims of FactKG's five kinds, made from the lines of a file of statements, half of them false.

Truth is by construction: a false claim has one object replaced by another object of the same predicate that its subject
does not have. `excludes` decides by counting lines whether the graph may refute a triple (`docs/reference/claims.md`).
No code is shared with the package.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

#: Predicates that are memberships in the graph; claims have other predicates.
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
    """The statements of `derived_labelled_statements.tsv`: subject, predicate, object with labels, then qualifiers."""

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
            subject, name, _, predicate, object_id, label, *qualifiers = line.split("\t")
            self.names[subject], self.names[object_id] = name, label
            self.objects[subject, predicate].add(object_id)
            self.lines[subject, predicate].append((object_id, *sorted(qualifiers)))
            self.count[predicate].add((subject, object_id, *sorted(qualifiers)))
            self.subjects[predicate].add(subject)
            self.range[predicate].add(object_id)
            self.joined |= {(subject, object_id), (object_id, subject)}
            self.predicates[subject].append(predicate)
        uses: dict[str, int] = defaultdict(int)
        for name in self.names.values():
            uses[name] += 1
        #: Entities with unique names; claims are about these.
        self.plain = {entity_id for entity_id, name in self.names.items() if uses[name] == 1 and name.strip() == name}

    def excludes(self, triple: Triple) -> bool:
        """Return whether a triple that is not stated is refuted: its predicate has one value, and the subject has
        another value, without times, that no statement connects with the claimed one.
        """
        subject, predicate, claimed = triple
        count, subjects = len(self.count[predicate]), len(self.subjects[predicate])
        if subjects < 30 or (count - subjects) * 100 > count:
            return False
        lines = self.lines[subject, predicate]
        times = ("start time", "end time", "point in time")
        timed = any(qualifier.endswith(tuple(f"={time}" for time in times)) for line in lines for qualifier in line[1::2])
        return bool(lines) and not timed and not any((line[0], claimed) in self.joined for line in lines)


def claims(lines: Lines, number: int, seed: int) -> list[Made]:
    """Return `number` claims of each kind, every second one false."""
    rng = random.Random(seed)
    stated = sorted((s, p, o) for (s, p), things in lines.objects.items() for o in things if p not in LINKS)
    stated = [item for item in stated if item[0] in lines.plain and item[2] in lines.plain]
    ranges = {predicate: sorted(things & lines.plain) for predicate, things in lines.range.items()}
    result: list[Made] = []

    def wrong_object(subject: str, predicate: str) -> str | None:
        candidates = [rng.choice(ranges[predicate]) for _ in range(20)]
        return next((item for item in candidates if item not in lines.objects[subject, predicate] and item != subject), None)

    def made(kind: str, true: bool) -> Made | None:
        s, p, o = rng.choice(stated)
        name = lines.names
        if kind in ("one hop", "negation"):
            claimed = o if true is (kind == "one hop") else wrong_object(s, p)
            if claimed is None:
                return None
            relation = p if kind == "one hop" else f"NOT {p}"
            return Made(kind, true, ((name[s], relation, name[claimed]),), (s, p, claimed))
        if kind == "conjunction":
            further = [
                (s, q, t) for q in set(lines.predicates[s]) for t in lines.objects[s, q] if (q, t) != (p, o) and t in lines.plain
            ]
            further = sorted(item for item in further if item[1] not in LINKS)
            last = o if true else wrong_object(s, p)
            if not further or last is None:
                return None
            triples = [*rng.sample(further, min(len(further), rng.choice((1, 2)))), (s, p, last)]
            return Made(kind, true, tuple((name[a], b, name[c]) for a, b, c in triples), (s, p, last))
        if kind == "existence":
            if not true:
                # Predicates that similar things have and s does not.
                similar = [t for q in sorted(set(lines.predicates[s])) for t in sorted(lines.objects[s, q])][:50]
                missing = sorted(q for item in similar for q in lines.predicates.get(item, ()) if not lines.objects.get((s, q)))
                missing = [q for q in missing if q not in LINKS]
                if not missing:
                    return None
                p = rng.choice(missing)
            return Made(kind, true, ((name[s], p, "UNKNOWN thing 1"),), (s, p, ""))
        second_steps = sorted((q, t) for q in set(lines.predicates.get(o, ())) for t in lines.objects[o, q] if t in lines.plain)
        second_steps = [(q, t) for q, t in second_steps if q not in LINKS]
        if not second_steps:
            return None
        q, t = rng.choice(second_steps)
        if not true:
            reached = {end for middle in lines.objects[s, p] for end in lines.objects.get((middle, q), ())}
            ends = [rng.choice(ranges[q]) for _ in range(20)]
            t = next((item for item in ends if item not in reached), "")
            if not t:
                return None
        return Made(kind, true, ((name[s], p, "UNKNOWN thing 1"), ("UNKNOWN thing 1", q, name[t])), (o, q, t))

    for kind in KINDS:
        while sum(item.kind == kind for item in result) < number:
            true = sum(item.kind == kind for item in result) % 2 == 0
            item = made(kind, true)
            if item is not None:
                result.append(item)
    return result
