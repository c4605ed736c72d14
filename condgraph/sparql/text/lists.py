"""Replaces long lists in filters of SPARQL queries by faster forms."""

from __future__ import annotations

import re

# -- groups ------------------------------------------------------------------------------------------
# Finds the groups of patterns in a query, and the lists (`?v IN (L)`) of their filters, without parsing
# all of it.
#
# The reader has to know which brackets match, what opens a group and how it relates to the outer one,
# which tokens are triples, and which conditions of filters hold on their own. A text with anything else
# is left unchanged. It is read once, from left to right. Only the standard library is imported: worker
# processes use this module too.


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
#: Keywords that end the triples of a group, and those of them that do not change what comes before.
_PARTS = frozenset(["optional", "minus", "bind", "union", "graph", "service", "values"])
HARMLESS = frozenset(["optional", "minus", "bind"])
#: Longest query, in tokens, that is rewritten.
_MOST = 100_000
#: A token: its kind ("iri", "string", "var", "tag", "number", "name", "word" or the mark itself), start
#: and end.
Token = tuple[str, int, int]


def tokens(text: str) -> list[Token] | None:
    """Split a query into tokens; None if something is no token, or there are too many."""
    result: list[Token] = []
    at, size = 0, len(text)
    match = _TOKEN.match
    while at < size:
        token = match(text, at)
        if token is None or len(result) > _MOST:
            return None
        kind = token.lastgroup or ""
        begin, at = at, token.end()
        if kind != "space":
            result.append((text[begin:at] if kind == "mark" else kind, begin, at))
    return result


class List:
    """A list `?v IN (L)`: its range, from the variable to the closing parenthesis, and its terms."""

    __slots__ = ("alone", "begin", "end", "negated", "size", "terms", "texts", "variable", "witness")

    def __init__(self, text: str, found: list[Token], at: int, opening: int, closing: int, *, negated: bool, texts: bool) -> None:
        self.begin, self.end = found[at][1], found[closing][2]
        self.variable = text[found[at][1] + 1 : found[at][2]]
        self.negated, self.texts = negated, texts
        inside = [token for token in found[opening + 1 : closing] if token[0] != ","]
        self.terms = " ".join(text[token[1] : token[2]] for token in inside)
        self.size = len(inside)
        #: A string of the list, or else an IRI. Comparing with it tells the same of a term outside the
        #: list as the others do.
        witness = next((token for token in inside if token[0] == "string"), inside[0])
        self.witness = text[witness[1] : witness[2]]
        #: Whether it is a condition of its group: a whole filter, or one side of its `&&`.
        self.alone = False


class Group:
    """A group of patterns: its triples, its parts, and the lists of its filters."""

    __slots__ = ("children", "closed", "direct", "link", "lists", "odd", "open", "parent", "parts", "text", "triples", "unions")

    def __init__(self, text: str, parent: Group | None, link: str) -> None:
        self.text = text
        #: How it relates to its parent: "top" (of a query), "plain" (also in a union), "apart" (such as
        #: optional), "closed" (its meaning depends on the context, so it is left unchanged).
        self.parent, self.link = parent, link
        self.closed: bool = link == "closed" or (parent is not None and parent.closed)
        #: The tokens of its triples, and where (None) something else comes between them, with its offset.
        self.direct: list[tuple[Token | None, int]] = []
        self.parts: set[str] = set()
        self.lists: list[List] = []
        self.children = self.unions = self.triples = 0
        #: Whether nothing around it restricts it; whether it has something that is not understood.
        self.open = self.odd = False

    def add(self, token: Token) -> None:
        """Add a token of a triple. A labelled blank node may occur on both sides of a filter, but not of a group."""
        self.odd |= token[0] == "name" and self.text.startswith("_:", token[1])
        self.direct.append((token, 0))
        self.triples += 1

    def look_around(self) -> None:
        """Determine whether the group is open; call this on parents first."""
        above = self.parent
        if self.link == "plain" and above is not None:
            alone = above.children == above.unions + 1 and above.parts <= {"union", "graph", "group"}
            self.open = above.open and alone and not above.triples
        else:
            self.open = self.link == "top"


class _Frame:
    """Something in brackets: a group ("{"), a filter or an expression in one ("filter"), or other content."""

    __slots__ = ("ands", "group", "kind", "lists", "plain")

    def __init__(self, kind: str, group: Group | None, *, plain: bool = False) -> None:
        self.kind, self.group = kind, group
        #: Whether it is a condition of its own, as far as the text before tells; whether it has no `||`;
        #: its lists.
        self.plain, self.ands = plain, True
        self.lists: list[List] = []


class Reader:
    """Reads the tokens of a query once, and finds its groups and the lists in their filters."""

    def __init__(self, text: str, found: list[Token]) -> None:
        self._text, self._found = text, found
        self._groups: list[Group] = []
        self._stack: list[_Frame] = []
        self._at = 0

    def _kind(self, at: int) -> str:
        return self._found[at][0] if 0 <= at < len(self._found) else ""

    def _word(self, at: int) -> str:
        """Return the word at an index in lower case; "" for another token."""
        if self._kind(at) != "word":
            return ""
        return self._text[self._found[at][1] : self._found[at][2]].lower()

    def groups(self) -> list[Group] | None:
        """Return the groups; None if brackets do not match, or something is not understood."""
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
        """Return the frame that a parenthesis opens."""
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
            for item in frame.lists:
                item.alone = True
        elif self._kind(self._at + 1) in (")", "&&"):
            above.lists += frame.lists

    def _keyword(self, group: Group | None) -> None:
        """Read a keyword between the triples of a group."""
        assert group is not None
        token, word = self._found[self._at], self._word(self._at)
        if word == "filter":
            group.direct.append((None, -1))
            # A function call: its name is no part of a triple.
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
        """Read a token of a filter."""
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
        item = List(self._text, self._found, at, opening, last, negated=negated, texts=texts)
        frame.group.lists.append(item)
        if before in ("(", "&&") and self._kind(last + 1) in (")", "&&"):
            frame.lists.append(item)
        self._at = last


# -- lists -------------------------------------------------------------------------------------------
# Oxigraph compares every row with every term of a list, two microseconds each: 100 names over 15,000
# rows take three seconds. `VALUES` is joined by an index, and subtracted (`MINUS`) by a hash. Both mean
# the same for a list of plain strings and IRIs: `=` with one of them is true for that very term and for
# no other. For other terms, `=` is false or an error, the same for all members of the list; this result
# is taken from one string of the list.
#
#     ?v IN (L), a condition of a group    { SELECT DISTINCT ?v { VALUES ?v { L } } } after the triples, if these bind ?v and
#                                          nothing else in the query is a better start
#     ?v NOT IN (L), the same              MINUS { VALUES ?v { L } } after the triples, if these bind ?v, and ?v != a
#     ?v IN (L), in any filter             (?v = a || (BOUND(?v) && EXISTS { VALUES ?v { L } }))
#     ?v NOT IN (L), in any filter         (?v != a && (!BOUND(?v) || NOT EXISTS { VALUES ?v { L } }))
#
# The last two keep errors as they are; they are only faster for lists of some length. What this module
# does not understand stays unchanged.


#: Shorter lists are kept: in the other form, terms are compared one by one as well.
LEAST = 8
_IN = re.compile(r"\bin\b", re.I)


def rewrite(text: str) -> str:
    """Rewrite a query with faster forms of its lists; its meaning stays the same.

    >>> print(rewrite("SELECT ?e { ?e <name> ?n FILTER(?n IN ('Nepal', 'Peru')) }"))
    SELECT ?e { ?e <name> ?n FILTER(true) { SELECT DISTINCT ?n { VALUES ?n { 'Nepal' 'Peru' } } } }
    >>> print(rewrite("SELECT ?e { ?e <size> ?n FILTER(?n IN (1, 2)) }"))
    SELECT ?e { ?e <size> ?n FILTER(?n IN (1, 2)) }
    """
    if _IN.search(text) is None:
        return text
    tokens_found = tokens(text)
    if tokens_found is None:
        return text
    groups = Reader(text, tokens_found).groups()
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
    """Return the edits for the lists of a group: start, end and new text."""
    bound, end, free = _triples(group)
    edits: list[tuple[int, int, str]] = []
    appended: list[str] = []
    joined = None
    if group.open and free:
        # Strings are objects, and few triples share one; few triples share a subject.
        candidates = [item for item in group.lists if item.alone and not item.negated and item.variable in bound]
        candidates = [item for item in candidates if (_OBJECT if item.texts else _SUBJECT) in bound[item.variable]]
        joined = max(candidates, key=lambda item: (item.texts, -item.size), default=None)
    for item in group.lists:
        variable = f"?{item.variable}"
        values = f"VALUES {variable} {{ {item.terms} }}"
        if item is joined:
            edits.append((item.begin, item.end, "true"))
            appended.append(f"{{ SELECT DISTINCT {variable} {{ {values} }} }}")
        elif item.alone and item.negated and item.variable in bound:
            edits.append((item.begin, item.end, f"{variable} != {item.witness}"))
            appended.append(f"MINUS {{ {values} }}")
        elif item.size >= LEAST and item.negated:
            absent = f"!BOUND({variable}) || NOT EXISTS {{ {values} }}"
            edits.append((item.begin, item.end, f"({variable} != {item.witness} && ({absent}))"))
        elif item.size >= LEAST:
            edits.append((item.begin, item.end, f"({variable} = {item.witness} || (BOUND({variable}) && EXISTS {{ {values} }}))"))
    if appended:
        edits.append((end, end, f"{' '.join(appended)} "))
    return edits


#: The expected part of a triple: within a path its first step or a further one, and after an object.
_SUBJECT, _PREDICATE, _FIRST, _PATH, _OBJECT, _AFTER = "subject", "predicate", "first", "path", "object", "after"


def _triples(group: Group) -> tuple[dict[str, set[str]], int, bool]:
    """Return the variables of the first triples of a group with their roles, the end of these triples, and whether it is free.

    It is free if no triple of the group has an entity or a value from which the store can start.
    """
    bound: dict[str, set[str]] = {}
    end, free = -1, group.parts <= HARMLESS
    steps = _Steps(group.text)
    for token, offset in group.direct:
        if token is not None:
            steps.take(token)
        elif offset < 0:
            steps.stop()
        else:
            steps.stop()
            if end < 0 and steps.bound:
                bound, end = {name: set(roles) for name, roles in steps.bound.items()}, offset
    return bound, end, free and steps.simple


class _Steps:
    """A state machine for triples, one token after the other: subject, predicate or path, objects."""

    def __init__(self, text: str) -> None:
        self._text, self._next, self._type = text, _SUBJECT, False
        self.bound: dict[str, set[str]] = {}
        #: Whether all was understood, without entities or values other than types.
        self.simple = True

    def stop(self) -> None:
        """End the triples."""
        self.simple &= self._next in (_SUBJECT, _PREDICATE, _AFTER)
        self._next = _SUBJECT

    def take(self, token: Token) -> None:
        """Read one token."""
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
