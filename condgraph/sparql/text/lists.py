"""`IN` and `NOT IN` of a query's text as what Oxigraph is quick at, where both mean the same.

Oxigraph compares every row with every term of a list, two microseconds each: 100 names over 15,000
rows are three seconds. `VALUES` is joined by an index, and taken away (`MINUS`) by a hash. A list
of plain strings and IRIs means the same either way: `=` with one of them is true for that very term
and for no other. What `=` says of other terms (false, or an error) is asked of one string of the
list, since it is the same for all.

    ?v IN (L), a condition of a group    { SELECT DISTINCT ?v { VALUES ?v { L } } } behind the triples, where these bind ?v, and
                                         nothing else in the query is a better place to begin at
    ?v NOT IN (L), the same              MINUS { VALUES ?v { L } } behind the triples, where these bind ?v, and ?v != a
    ?v IN (L), in any filter             (?v = a || (BOUND(?v) && EXISTS { VALUES ?v { L } }))
    ?v NOT IN (L), in any filter         (?v != a && (!BOUND(?v) || NOT EXISTS { VALUES ?v { L } }))

The last two keep errors as they are; they pay for lists of some length only. What this module does
not understand stays as it is written. It reads a text once, and imports the standard library only:
worker processes use it too.
"""

from __future__ import annotations

import re

from condgraph.sparql.text.groups import HARMLESS, Group, Reader, Token, tokens

#: Lists that are shorter stay, where the other form is compared with term by term as well.
LEAST = 8
_IN = re.compile(r"\bin\b", re.I)


def rewrite(text: str) -> str:
    """A query that means the same, with quick forms of its lists.

    >>> print(rewrite("SELECT ?e { ?e <name> ?n FILTER(?n IN ('Nepal', 'Peru')) }"))
    SELECT ?e { ?e <name> ?n FILTER(true) { SELECT DISTINCT ?n { VALUES ?n { 'Nepal' 'Peru' } } } }
    >>> print(rewrite("SELECT ?e { ?e <size> ?n FILTER(?n IN (1, 2)) }"))
    SELECT ?e { ?e <size> ?n FILTER(?n IN (1, 2)) }
    """
    if _IN.search(text) is None:
        return text
    found = tokens(text)
    if found is None:
        return text
    groups = Reader(text, found).groups()
    if groups is None:
        return text
    edits: list[tuple[int, int, str]] = []
    for group in groups:
        if group.lists and not group.odd:
            edits += _changed(group)
    pieces: list[str] = []
    last = 0
    for begin, end, new in sorted(edits):
        pieces += (text[last:begin], new)
        last = end
    return "".join((*pieces, text[last:]))


def _changed(group: Group) -> list[tuple[int, int, str]]:
    """What to write instead of what, for the lists of a group: where it begins and ends, and the
    new text.
    """
    bound, end, free = _triples(group)
    edits: list[tuple[int, int, str]] = []
    behind: list[str] = []
    joined = None
    if group.open and free:
        # Strings are objects, and few have the same one; of a subject, few triples.
        ready = [one for one in group.lists if one.alone and not one.negated and one.variable in bound]
        ready = [one for one in ready if (_OBJECT if one.texts else _SUBJECT) in bound[one.variable]]
        joined = max(ready, key=lambda one: (one.texts, -one.size), default=None)
    for one in group.lists:
        variable = f"?{one.variable}"
        values = f"VALUES {variable} {{ {one.terms} }}"
        if one is joined:
            edits.append((one.begin, one.end, "true"))
            behind.append(f"{{ SELECT DISTINCT {variable} {{ {values} }} }}")
        elif one.alone and one.negated and one.variable in bound:
            edits.append((one.begin, one.end, f"{variable} != {one.witness}"))
            behind.append(f"MINUS {{ {values} }}")
        elif one.size >= LEAST and one.negated:
            absent = f"!BOUND({variable}) || NOT EXISTS {{ {values} }}"
            edits.append((one.begin, one.end, f"({variable} != {one.witness} && ({absent}))"))
        elif one.size >= LEAST:
            edits.append((one.begin, one.end, f"({variable} = {one.witness} || (BOUND({variable}) && EXISTS {{ {values} }}))"))
    if behind:
        edits.append((end, end, f"{' '.join(behind)} "))
    return edits


#: What comes next in triples: within a path its first step, or another one, and behind an object.
_SUBJECT, _PREDICATE, _FIRST, _PATH, _OBJECT, _AFTER = "subject", "predicate", "first", "path", "object", "after"


def _triples(group: Group) -> tuple[dict[str, set[str]], int, bool]:
    """The variables of the first triples of a group, by where they stand; where these triples end;
    and whether no triple of the group names an entity or a value to begin at.
    """
    bound: dict[str, set[str]] = {}
    end, free = -1, group.parts <= HARMLESS
    steps = _Steps(group.text)
    for token, place in group.direct:
        if token is not None:
            steps.take(token)
        elif place < 0:
            steps.stop()
        else:
            steps.stop()
            if end < 0 and steps.bound:
                bound, end = {name: set(roles) for name, roles in steps.bound.items()}, place
    return bound, end, free and steps.simple


class _Steps:
    """Triples, a token after the other: subject, predicate or path, objects."""

    def __init__(self, text: str) -> None:
        self._text, self._next, self._type = text, _SUBJECT, False
        self.bound: dict[str, set[str]] = {}
        #: Whether they are understood, and none of them names an entity or a value, but for types.
        self.simple = True

    def stop(self) -> None:
        """The triples end here."""
        self.simple &= self._next in (_SUBJECT, _PREDICATE, _AFTER)
        self._next = _SUBJECT

    def take(self, token: Token) -> None:
        """Go on."""
        kind, begin, end = token
        if kind == "var":
            roles = self.bound.setdefault(self._text[begin + 1 : end], set())
        if self._next == _PATH and kind in ("/", "|", "*", "+", "?"):
            self._type = False
            self._next = _FIRST if kind in ("/", "|") else _PATH
            return
        state = _OBJECT if self._next == _PATH else self._next
        if kind == "." and state in (_SUBJECT, _PREDICATE, _AFTER):
            self._next = _SUBJECT
        elif kind == ";" and state in (_PREDICATE, _AFTER):
            self._next = _PREDICATE
        elif kind == "," and state == _AFTER:
            self._next = _OBJECT
        elif kind == "^" and state in (_PREDICATE, _FIRST):
            self._next = _FIRST
        elif kind in ("iri", "name", "word") and state in (_PREDICATE, _FIRST):
            self._type = kind == "word" and state == _PREDICATE
            self._next = _PATH
        elif kind == "var" and state in (_SUBJECT, _PREDICATE, _OBJECT):
            roles.add(state)
            self._type &= state != _PREDICATE
            self._next = {_SUBJECT: _PREDICATE, _PREDICATE: _OBJECT, _OBJECT: _AFTER}[state]
        elif kind in ("iri", "name") and state == _OBJECT and self._type:
            self._next = _AFTER
        else:
            self.simple = False
