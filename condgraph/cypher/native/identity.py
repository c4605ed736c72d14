"""How nodes of an existing database are identified and named, and looked up by id and by name.

Look-up queries use the indexes of labels, one label each, and then test the name or id itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from condgraph.cypher.answer import literal
from condgraph.cypher.layout import schema as own
from condgraph.cypher.layout.schema import quote
from condgraph.cypher.native.mapping import Mapping, NodeType

# -- Ids and names -----------------------------------------------------------------------------------
# How nodes are identified and named, as Cypher expressions.
#
#     id    "Label/key" of the node's first label (by name) that has a unique property, if the node has
#           that property; else the server's `elementId`, which is not stable
#     name  the name properties of the node's first label (by name) with any of them, joined by a blank;
#           else "Label key"; else "Label 17", with the server's number of the node, or "node 17"
#           if it has no label
#
# A concept is a label and has the id ":Label". Nodes and labels of condgraph's own graphs in the same database are left out.


#: Labels of condgraph's own nodes, which are left out.
OWN: Final = frozenset(
    (
        own.ENTITY,
        own.CONCEPT,
        own.ROW,
        own.VALUE,
        own.STATEMENT,
        own.QUALIFIER,
        own.GRAPH,
        own.SOURCE,
        own.PREDICATE,
        own.LOAD,
        own.FORMER,
        own.EDIT,
        own.VECTORS,
        own.EMBEDDING,
    )
)
#: The source of all statements of an existing database.
SOURCE: Final = "neo4j"
_OWN: Final = "|".join(sorted(OWN - {own.CONCEPT, own.ROW}))


def own_only(label: str) -> bool:
    """Tell whether a label is condgraph's own and its nodes have no other own label that counts them."""
    return label in OWN and label not in (own.CONCEPT, own.ROW)


def foreign(e: str) -> str:
    """Return a test that a node is not condgraph's own."""
    return f"NOT {e}:{_OWN}"


def has_label(e: str, label: str) -> str:
    """Return a test that a node has a label; for the empty label, that it has none."""
    return f"{e}:{quote(label)}" if label else f"size(labels({e})) = 0"


def concept_id(label: str) -> str:
    """Return the id of a label's concept."""
    return f":{label}"


def id_of(e: str, mapping: Mapping, labels: Sequence[str] | None = None) -> str:
    """Return the id of a node as text.

    If given, `labels` are the only ones with a unique property that the node may have; it has at least one of them.
    """
    cases = [
        f"WHEN {has_label(e, node.label)} AND {_as_text(e, node.unique)} IS NOT NULL "
        f"THEN {literal(node.label + '/')} + {_as_text(e, node.unique)}"
        for node in _among(mapping, labels)
        if node.unique is not None
    ]
    return f"CASE {' '.join(cases)} ELSE elementId({e}) END" if cases else f"elementId({e})"


def name_of(e: str, mapping: Mapping, labels: Sequence[str] | None = None) -> str:
    """Return the name of a node as text; for `labels`, see `id_of`."""
    by_name, by_key = [], []
    for node in _among(mapping, labels):
        test = has_label(e, node.label)
        if node.name:
            name = joined(e, node.name)
            by_name.append(f"WHEN {test} AND {name} <> '' THEN {name}")
        if node.unique is not None:
            key = _as_text(e, node.unique)
            by_key.append(f"WHEN {test} AND {key} IS NOT NULL THEN {literal(node.concept + ' ')} + {key}")
    by_label = [
        f"WHEN {has_label(e, node.label)} THEN {literal(node.concept + ' ')} + {_number(e, mapping)}"
        for node in _among(mapping, labels)
        if node.label
    ]
    cases = [*by_name, *by_key, *by_label]
    number = _number(e, mapping)
    return f"CASE {' '.join(cases)} ELSE 'node ' + {number} END" if cases else f"'node ' + {number}"


def joined(e: str, keys: Sequence[str]) -> str:
    """Return the properties of a name as one text, which is empty if the node has none of them."""
    first, *remaining = (f"coalesce({_as_text(e, key)}, '')" for key in keys)
    return f"trim({first}{''.join(f' + {literal(chr(32))} + {text}' for text in remaining)})" if remaining else first


def _among(mapping: Mapping, labels: Sequence[str] | None) -> list[NodeType]:
    return [node for node in mapping.nodes if labels is None or node.label in labels]


def _as_text(e: str, key: str) -> str:
    return f"toStringOrNull({e}.{quote(key)})"


def _number(e: str, mapping: Mapping) -> str:
    """Return the node's number, at the end of the server's id, or the whole id."""
    return f"elementId({e})" if mapping.whole_ids else f"last(split(elementId({e}), ':'))"


# -- Look-up -----------------------------------------------------------------------------------------


#: Types that can be found by their texts.
_PLAIN: Final = ({"STRING"}, {"INTEGER"})
#: A placeholder for the variable in a text; no label or key contains this character.
_VARIABLE: Final = "\0"
#: The variable for all values that are written like some texts.
_SIMILAR: Final = "alike"
#: A query names up to this many labels one by one; for more it searches a list, which is planned faster.
_MAX_LISTED: Final = 4


def node_of(e: str, label: str) -> str:
    """Return the pattern of the nodes of a label; for "", of those without labels."""
    return f"({e}:{quote(label)})" if label else f"({e} WHERE {has_label(e, label)})"


def within_labels(e: str, labels: Sequence[str]) -> str:
    """Return a test that a node has one of these labels."""
    non_empty = [label for label in labels if label]
    tests = [f"{e}:{'|'.join(map(quote, non_empty))}"] if non_empty else []
    tests += [has_label(e, "")] if "" in labels else []
    return tests[0] if len(tests) == 1 else f"({' OR '.join(tests)})" if tests else "false"


class Identity:
    """Names and ids of one mapping.

    `parameters` are those that the expressions and queries need. For many labels, their data is in lists there and not in the
    query text, which is then planned faster.
    """

    __slots__ = ("_begins", "_id", "_lists", "_name", "_nodes", "_whole_ids", "parameters")

    def __init__(self, mapping: Mapping) -> None:
        self._nodes, self._whole_ids = mapping.nodes, mapping.whole_ids
        self._lists: dict[str, list[Any]] = {}
        self._id, self._name = self._short_id(_VARIABLE, mapping), self._short_name(_VARIABLE, mapping)
        # The prefixes of names that use the server's number.
        words = dict.fromkeys(["node", *(node.concept for node in mapping.nodes if node.label)])
        self._begins = " OR ".join(f"x STARTS WITH {literal(word + ' ')}" for word in words)
        if self._lists:
            self._lists["numbered"] = [word + " " for word in words]
            self._begins = "any(w IN $names.numbered WHERE x STARTS WITH w)"
        self.parameters: dict[str, Any] = {"names": self._lists} if self._lists else {}

    def id(self, e: str) -> str:
        """Return the id of a node."""
        return self._id.replace(_VARIABLE, e)

    def name(self, e: str) -> str:
        """Return the name of a node, which is never null."""
        return self._name.replace(_VARIABLE, e)

    def named(self, e: str, test: str) -> list[str]:
        """Return queries for all nodes whose names pass a test ("= x" or "IN xs").

        They may return a node more than once, and also nodes whose names fail the test.
        """
        values, result = _values(test), list[str]()
        # Labels without an index are searched together, since each query takes long to plan.
        labels_by_test: dict[str, list[str]] = {}
        other_types = "".join(f" + [x IN {values} | {read}(x)]" for read in ("toIntegerOrNull", "toFloatOrNull", "toBooleanOrNull"))
        similar = f"WITH {values}{other_types} AS {_SIMILAR} "

        def match(pattern: str, tests: str) -> str:
            return f"{similar if _SIMILAR in tests else ''}MATCH {pattern} WHERE {tests} RETURN {e}"

        for node in self._nodes:
            if node.name:
                lookup = None if len(node.name) > 1 else _indexed_test(node, node.name[0], values)
                tests = f"{e}.{quote(node.name[0])} {lookup}" if lookup is not None else f"{joined(e, node.name)} {test}"
                if node.label and _unindexed(node):
                    labels_by_test.setdefault(tests, []).append(node.label)
                else:
                    result.append(match(node_of(e, node.label), tests))
            # A name may be empty, and then counts as none.
            if node.unique is not None and node.name != (node.unique,):
                result.append(self._by_key(e, node, node.unique, values, node.concept + " "))
        for tests, labels in labels_by_test.items():
            result.append(match(f"({e}:{'|'.join(map(quote, labels))})", tests))
        # Names that look like a node's number are found through the server's id, whose prefix all nodes of a database share:
        # testing each node's number would scan them.
        number = "#[0-9]+:[0-9]+" if self._whole_ids else "[0-9]+"
        candidates = f"[x IN {values} WHERE ({self._begins}) AND x =~ '(?s).* {number}']"
        if self._whole_ids:
            lookup = f"last(split({e}x, ' '))"
            return [
                *result,
                f"UNWIND {candidates} AS {e}x MATCH ({e}) WHERE elementId({e}) = {lookup} AND {foreign(e)} RETURN {e}",
            ]
        any_id = f"COLLECT {{ MATCH ({e}a) RETURN elementId({e}a) LIMIT 1 }}"
        lookup = f"left({e}i, size({e}i) - size(last(split({e}i, ':')))) + last(split({e}x, ' '))"
        result.append(
            f"UNWIND {candidates} AS {e}x UNWIND {any_id} AS {e}i "
            f"MATCH ({e}) WHERE elementId({e}) = {lookup} AND {foreign(e)} RETURN {e}"
        )
        return result

    def identified(self, e: str, test: str) -> list[str]:
        """Return queries for all nodes whose ids may pass a test. See `named`."""
        values = _values(test)
        result = [self._by_key(e, node, node.unique, values, node.label + "/") for node in self._nodes if node.unique is not None]
        return [*result, f"MATCH ({e}) WHERE elementId({e}) IN {values} AND {foreign(e)} RETURN {e}"]

    def naming(self, e: str) -> list[tuple[str, str]]:
        """Return the patterns of the labels whose nodes have a single name property, each with this property."""
        return [(node_of(e, node.label), f"{e}.{quote(node.name[0])}") for node in self._nodes if len(node.name) == 1]

    def _by_key(self, e: str, node: NodeType, key: str, values: str, prefix: str) -> str:
        condition, pattern = _indexed_test(node, key, values, prefix), node_of(e, node.label)
        if condition is not None:
            return f"MATCH {pattern} WHERE {e}.{quote(key)} {condition} RETURN {e}"
        candidates = f"[x IN {values} WHERE x STARTS WITH {literal(prefix)} | substring(x, {len(prefix)})]"
        return f"UNWIND {candidates} AS {e}x MATCH {pattern} WHERE toStringOrNull({e}.{quote(key)}) = {e}x RETURN {e}"

    def _short_id(self, e: str, mapping: Mapping) -> str:
        """Return the expression of `id_of`, shorter if there are many labels."""
        keyed = [[node.label, node.unique] for node in mapping.nodes if node.unique is not None]
        if len(keyed) <= _MAX_LISTED:
            return id_of(e, mapping)
        key = f"toStringOrNull({e}[x[1]])"
        first = self._first(e, "ids", keyed, f"x[0] + '/' + {key}", f"{key} IS NOT NULL")
        return f"coalesce({first}, elementId({e}))"

    def _short_name(self, e: str, mapping: Mapping) -> str:
        """Return the expression of `name_of`, shorter if there are many labels.

        Most queries contain it several times, and the server's planning time grows with the text.
        """
        named = [[node.label, *node.name] for node in mapping.nodes if node.name]
        keyed = [
            [node.label, node.unique, node.concept + " "] for node in mapping.nodes if node.unique and node.name != (node.unique,)
        ]
        fallback = f"{self._first_concept(e, mapping)} + {_number(e, mapping)}"
        if len(named) + len(keyed) <= _MAX_LISTED:
            cases = _cases(e, mapping)
            return f"coalesce(CASE {' '.join(cases)} END, {fallback})" if cases else fallback
        key = f"{e}[x[1]]"
        # Several properties, joined as `joined` does.
        name = f"toStringOrNull({key})"
        joined_names = f"trim(reduce(t = '', y IN tail(x) | t + ' ' + coalesce(toStringOrNull({e}[y]), '')))"
        if any(len(entry) > 2 for entry in named):
            name = f"CASE size(x) WHEN 2 THEN {name} ELSE {joined_names} END"
        result = [self._first(e, "named", named, name, f"{name} <> ''")] if named else []
        if keyed:
            result.append(self._first(e, "keyed", keyed, f"x[2] + toStringOrNull({key})", f"{key} IS NOT NULL"))
        return f"coalesce({', '.join(result)}, {fallback})"

    def _first_concept(self, e: str, mapping: Mapping) -> str:
        """Return the first of a node's concepts in the mapping's order, and a blank."""
        concepts = {node.label: node.concept for node in mapping.nodes if node.label}
        if len(concepts) <= _MAX_LISTED:
            cases = [f"WHEN {e}:{quote(label)} THEN {literal(concept + ' ')}" for label, concept in concepts.items()]
            return f"CASE {' '.join(cases)} ELSE 'node ' END" if cases else "'node '"
        pairs = [[label, concept + " "] for label, concept in concepts.items()]
        return f"coalesce({self._first(e, 'concepts', pairs, 'x[1]')}, 'node ')"

    def _first(self, e: str, name: str, lists: Sequence[Sequence[str | None]], result: str, test: str = "") -> str:
        """Return an expression for `result` of the first list `x` whose label the node has and that passes a test, or null.

        A node without labels has the label "". The lists become a parameter.
        """
        has = f"x[0] IN labels({e})"
        if any(item[0] == "" for item in lists):
            has = f"({has} OR x[0] = '' AND size(labels({e})) = 0)"
        self._lists[name] = [[text for text in part if text is not None] for part in lists]
        return f"[x IN $names.{name} WHERE {has}{f' AND {test}' if test else ''} | {result}][0]"


def found_ids(test: str) -> str:
    """Return the server's ids of the nodes whose names pass a test, among those looked up before."""
    return f"reduce(y = [], x IN {_values(test)} | y + coalesce($found[x], []))"


def _unindexed(node: NodeType) -> bool:
    """Tell whether no index covers the name properties of a label."""
    return {prop.key for prop in node.properties if prop.unindexed}.issuperset(node.name)


def _cases(e: str, mapping: Mapping) -> list[str]:
    """Return the cases of a name for few labels, one by one."""
    cases: list[tuple[list[str], tuple[str, ...]]] = []
    for node in mapping.nodes:
        if node.name and cases and cases[-1][1] == node.name:
            cases[-1][0].append(node.label)
        elif node.name:
            cases.append(([node.label], node.name))
    named = []
    for labels, keys in cases:
        value = f"{e}.{quote(keys[0])}" if len(keys) == 1 else joined(e, keys)
        text = f"toStringOrNull({value})" if len(keys) == 1 else value
        named.append(f"WHEN {within_labels(e, labels)} AND {value} <> '' THEN {text}")
    keyed = [
        f"WHEN {has_label(e, node.label)} AND {e}.{quote(node.unique)} IS NOT NULL "
        f"THEN {literal(node.concept + ' ')} + toStringOrNull({e}.{quote(node.unique)})"
        for node in mapping.nodes
        if node.unique is not None and node.name != (node.unique,)
    ]
    return [*named, *keyed]


def _values(test: str) -> str:
    """Return the texts that a test allows, as a list."""
    return f"[{test[2:]}]" if test.startswith("= ") else test[3:]


def _indexed_test(node: NodeType, key: str, values: str, prefix: str = "") -> str | None:
    """Return a test on the property itself, which an index answers, or None if its text differs from the value."""
    types = {kind for prop in node.properties if prop.key == key for kind, _ in prop.types}
    if types not in _PLAIN:
        return None
    text = f"substring(x, {len(prefix)})" if prefix else "x"
    if types == {"INTEGER"}:
        text = f"toIntegerOrNull({text})"
    elif not prefix and node.beyond and any(prop.indexed or prop.unindexed for prop in node.properties if prop.key == key):
        # Outside the sample a name may be a number or a truth value; the list is made once.
        return f"IN {_SIMILAR}"
    elif not prefix:
        # Written as it is, so that a single text is one index seek.
        return f"= {values[1:-1]}" if values.startswith("[") else f"IN {values}"
    where = f" WHERE x STARTS WITH {literal(prefix)}" if prefix else ""
    return f"IN [x IN {values}{where} | {text}]"
