"""Lists of solutions in SPARQL results, and their groups."""

from __future__ import annotations

import re

# -- groups ------------------------------------------------------------------------------------------
# The groups of patterns in a query's text, and the lists (`?v IN (L)`) of their filters, without
# parsing all of it.
#
# What has to be understood is: which brackets belong together, what opens a group and how that stands
# in another one, which tokens are triples, and which conditions of filters hold on their own. A text
# in which something else occurs is given up. It is read once, from left to right. Imports the
# standard library only: worker processes use it too.


_TOKEN = re.compile(
    r"""
      (?P<space>[\s]++|\#[^\n\r]*+)
    | (?P<iri><[^<>"{}|^`\\\x00-\x20]*+>)
    | (?P<string>\"{3}(?:\"{0,2}+(?:[^"\\]|\\.))*+\"{3} | '{3}(?:'{0,2}+(?:[^'\\]|\\.))*+'{3}
        | "(?!"")(?:[^"\\\n\r]|\\.)*+" | '(?!'')(?:[^'\\\n\r]|\\.)*+')
    | (?P<var>[?$]\w++)
    | (?P<tag>@[A-Za-z]++(?:-[A-Za-z0-9]++)*+|\^\^)
    | (?P<number>(?:[0-9]++(?:\.[0-9]++)?+|\.[0-9]++)(?:[eE][+-]?+[0-9]++)?+)
    | (?P<name>(?:[^\W\d]\w*+(?:[.\-]++\w++)*+)?+:(?:[\w:\-]|%[0-9A-Fa-f]{2}|\\.|\.++(?=[\w:%\\\-]))*+)
    | (?P<word>[^\W\d]\w*+(?:[.\-]++\w++)*+)
    | (?P<mark>&&|\|\||[!<>]=|[{}()\[\].;,=<>!+\-*/|^?])
    """,
    re.X | re.S,
)
#: What ends the triples of a group; those of them that leave what stands before them as it is.
_PARTS = frozenset(["optional", "minus", "bind", "union", "graph", "service", "values"])
HARMLESS = frozenset(["optional", "minus", "bind"])
#: Texts of more tokens are left alone.
_MOST = 100_000
#: A token: its kind ("iri", "string", "var", "tag", "number", "name", "word" or the mark itself),
#: where it begins and ends.
Token = tuple[str, int, int]


def tokens(text: str) -> list[Token] | None:
    """The tokens of a query; None where something is none, or there are too many."""
    found: list[Token] = []
    at, size = 0, len(text)
    match = _TOKEN.match
    while at < size:
        one = match(text, at)
        if one is None or len(found) > _MOST:
            return None
        kind = one.lastgroup or ""
        begin, at = at, one.end()
        if kind != "space":
            found.append((text[begin:at] if kind == "mark" else kind, begin, at))
    return found


class List:
    """`?v IN (L)`: where it stands, from the variable to the closing parenthesis, and what the list
    is.
    """

    __slots__ = ("alone", "begin", "end", "negated", "size", "terms", "texts", "variable", "witness")

    def __init__(self, text: str, found: list[Token], at: int, opening: int, closing: int, *, negated: bool, texts: bool) -> None:
        self.begin, self.end = found[at][1], found[closing][2]
        self.variable = text[found[at][1] + 1 : found[at][2]]
        self.negated, self.texts = negated, texts
        inside = [one for one in found[opening + 1 : closing] if one[0] != ","]
        self.terms = " ".join(text[one[1] : one[2]] for one in inside)
        self.size = len(inside)
        #: A string of the list, or else an IRI: what it says of terms that are not in the list, the
        #: others say.
        witness = next((one for one in inside if one[0] == "string"), inside[0])
        self.witness = text[witness[1] : witness[2]]
        #: Whether it is a condition of its group: a whole filter, or one side of its `&&`.
        self.alone = False


class Group:
    """A group of patterns: its triples, its parts, and the lists of its filters."""

    __slots__ = ("children", "closed", "direct", "link", "lists", "odd", "open", "parent", "parts", "text", "triples", "unions")

    def __init__(self, text: str, parent: Group | None, link: str) -> None:
        self.text = text
        #: How it stands in its parent: "top" (of a query), "plain" (also of a union), "apart"
        #: (optional, say), "closed" (what it means depends on what is around it: nothing is changed
        #: in it).
        self.parent, self.link = parent, link
        self.closed: bool = link == "closed" or (parent is not None and parent.closed)
        #: The tokens of its triples, and where (None) something else stands between them, with its
        #: offset.
        self.direct: list[tuple[Token | None, int]] = []
        self.parts: set[str] = set()
        self.lists: list[List] = []
        self.children = self.unions = self.triples = 0
        #: Whether nothing around it restricts it; whether there is something that is not
        #: understood.
        self.open = self.odd = False

    def add(self, token: Token) -> None:
        """A token of its triples. A blank node that is named may stand on both sides of a filter,
        but not of a group.
        """
        self.odd |= token[0] == "name" and self.text.startswith("_:", token[1])
        self.direct.append((token, 0))
        self.triples += 1

    def look_around(self) -> None:
        """Find out whether it is open; parents first."""
        above = self.parent
        if self.link == "plain" and above is not None:
            alone = above.children == above.unions + 1 and above.parts <= {"union", "graph", "group"}
            self.open = above.open and alone and not above.triples
        else:
            self.open = self.link == "top"


class _Frame:
    """Something between brackets: a group ("{"), a filter or an expression of one ("filter"), or
    what holds nothing of interest.
    """

    __slots__ = ("ands", "group", "kind", "lists", "plain")

    def __init__(self, kind: str, group: Group | None, *, plain: bool = False) -> None:
        self.kind, self.group = kind, group
        #: Whether it is a condition of its own, as far as what stands before it goes; whether it
        #: has no `||`; its lists.
        self.plain, self.ands = plain, True
        self.lists: list[List] = []


class Reader:
    """Goes through the tokens of a query once, and finds its groups and the lists of their filters."""

    def __init__(self, text: str, found: list[Token]) -> None:
        self._text, self._found = text, found
        self._groups: list[Group] = []
        self._stack: list[_Frame] = []
        self._at = 0

    def _kind(self, at: int) -> str:
        return self._found[at][0] if 0 <= at < len(self._found) else ""

    def _word(self, at: int) -> str:
        """A word in lower case; nothing where another token stands."""
        if self._kind(at) != "word":
            return ""
        return self._text[self._found[at][1] : self._found[at][2]].lower()

    def groups(self) -> list[Group] | None:
        """The groups; None where brackets do not match, or something is not understood."""
        while self._at < len(self._found):
            kind = self._kind(self._at)
            frame = self._stack[-1] if self._stack else None
            if kind == "{":
                if not self._open_group(frame):
                    return None
            elif kind == "(":
                self._stack.append(self._bracket(frame))
            elif kind in ("}", ")"):
                if frame is None or (frame.kind == "{") != (kind == "}"):
                    return None
                self._close()
            elif frame is not None and frame.kind == "filter":
                self._expression(frame, kind)
            elif frame is not None and frame.kind == "{" and kind == "word":
                self._keyword(frame.group)
            elif frame is not None and frame.kind in ("{", "triples") and frame.group is not None:
                frame.group.add(self._found[self._at])
            self._at += 1
        if self._stack:
            return None
        for group in self._groups:
            group.look_around()
        return self._groups

    def _open_group(self, frame: _Frame | None) -> bool:
        if self._kind(self._at + 1) == "|":
            return False  # an annotation of RDF 1.2
        around = None if frame is None else frame.group
        before, second = self._word(self._at - 1), self._word(self._at - 2)
        if before in ("optional", "minus", "exists"):
            link = "apart"
        elif before == "construct" or second == "service" or self._word(self._at - 3) == "service":
            link = "closed"
        elif second == "graph":
            link = "closed" if self._kind(self._at - 1) == "var" else "plain"
        elif around is None or "select" in around.parts:
            link = "top"
        else:
            link = "plain"
            around.parts.add("group")
            around.direct.append((None, self._found[self._at][1]))
        group = Group(self._text, around, link)
        if around is not None:
            around.children += 1
        self._groups.append(group)
        self._stack.append(_Frame("{", group))
        if self._word(self._at + 1) == "select":
            group.parts.add("select")
        return True

    def _bracket(self, frame: _Frame | None) -> _Frame:
        """What a parenthesis opens."""
        if frame is None or frame.group is None:
            return _Frame("other", None)
        before = self._word(self._at - 1)
        if frame.kind == "{" and "select" not in frame.group.parts:
            if before == "filter":
                return _Frame("filter", frame.group, plain=True)
            if before or self._word(self._at - 2) == "filter":  # BIND, or the call of a function
                return _Frame("other", frame.group)
            frame.group.add(self._found[self._at])
            return _Frame("triples", frame.group)
        if frame.kind == "filter":
            return _Frame("filter", frame.group, plain=self._kind(self._at - 1) in ("(", "&&"))
        return _Frame("other" if frame.kind == "{" else frame.kind, frame.group)

    def _close(self) -> None:
        frame = self._stack.pop()
        if frame.kind == "{" and frame.group is not None:
            frame.group.direct.append((None, self._found[self._at][1]))
        if frame.kind != "filter" or not (frame.plain and frame.ands):
            return
        above = self._stack[-1]
        if above.kind == "{":
            for one in frame.lists:
                one.alone = True
        elif self._kind(self._at + 1) in (")", "&&"):
            above.lists += frame.lists

    def _keyword(self, group: Group | None) -> None:
        """A word between the triples of a group."""
        assert group is not None
        token, word = self._found[self._at], self._word(self._at)
        if word == "filter":
            group.direct.append((None, -1))
            # A call of a function: its name is none of the triples.
            while self._kind(self._at + 1) not in ("(", "{", "}", ""):
                self._at += 1
        elif word in _PARTS:
            group.parts.add(word)
            group.unions += word == "union"
            group.direct.append((None, token[1]))
            if word == "values":
                while self._kind(self._at + 1) not in ("}", ""):
                    self._at += 1
                self._at += 1
            elif word in ("graph", "service"):
                self._at += self._word(self._at + 1) == "silent"
                self._at += 1
        elif "select" not in group.parts:
            group.odd |= word not in ("a", "true", "false")
            group.add(token)

    def _expression(self, frame: _Frame, kind: str) -> None:
        """A token of a filter."""
        if kind == "||":
            frame.ands = False
        at, before = self._at, self._kind(self._at - 1)
        if kind != "var" or before not in ("(", "&&", "||", ",") or frame.group is None or frame.group.closed:
            return
        negated = self._word(at + 1) == "not"
        opening = at + 2 + negated
        if self._word(opening - 1) != "in" or self._kind(opening) != "(":
            return
        last, texts = opening, True
        while self._kind(last) in ("(", ","):
            if self._kind(last) == "(" and last != opening:
                return
            named = self._kind(last + 1)
            if named not in ("iri", "string", "name") or self._text.startswith("_:", self._found[last + 1][1]):
                return
            texts &= named == "string"
            last += 2
        if self._kind(last) != ")" or self._kind(last + 1) not in (")", "&&", "||", ","):
            return
        one = List(self._text, self._found, at, opening, last, negated=negated, texts=texts)
        frame.group.lists.append(one)
        if before in ("(", "&&") and self._kind(last + 1) in (")", "&&"):
            frame.lists.append(one)
        self._at = last


# -- lists -------------------------------------------------------------------------------------------
# Oxigraph compares every row with every term of a list, two microseconds each: 100 names over 15,000
# rows are three seconds. `VALUES` is joined by an index, and taken away (`MINUS`) by a hash. A list
# of plain strings and IRIs means the same either way: `=` with one of them is true for that very term
# and for no other. What `=` says of other terms (false, or an error) is asked of one string of the
# list, since it is the same for all.
#
#     ?v IN (L), a condition of a group    { SELECT DISTINCT ?v { VALUES ?v { L } } } behind the triples, where these bind ?v, and
#                                          nothing else in the query is a better place to begin at
#     ?v NOT IN (L), the same              MINUS { VALUES ?v { L } } behind the triples, where these bind ?v, and ?v != a
#     ?v IN (L), in any filter             (?v = a || (BOUND(?v) && EXISTS { VALUES ?v { L } }))
#     ?v NOT IN (L), in any filter         (?v != a && (!BOUND(?v) || NOT EXISTS { VALUES ?v { L } }))
#
# The last two keep errors as they are; they pay for lists of some length only. What this module does
# not understand stays as it is written. It reads a text once, and imports the standard library only:
# worker processes use it too.


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
