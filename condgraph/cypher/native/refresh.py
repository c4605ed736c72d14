"""The current mapping of an existing database: counted where samples tell too little, and read again when counts change."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar

from condgraph.cypher.answer import literal
from condgraph.cypher.layout.schema import quote
from condgraph.cypher.native import introspect
from condgraph.cypher.native.file import applied
from condgraph.cypher.native.identity import within_labels
from condgraph.cypher.native.mapping import Mapping, NodeType, Property, RelationshipType
from condgraph.cypher.native.properties import named
from condgraph.cypher.native.values import BYTES, INTEGERS, NUMBER, any_spaced, format_of, type_of
from condgraph.engine import algebra as alg
from condgraph.engine.algebra import Node, postorder
from condgraph.engine.algebra import expressions as ex
from condgraph.engine.bounds import check, left, wait_for, within
from condgraph.engine.errors import DeadlineError, OptionError
from condgraph.engine.facts import END_TIME, START_TIME
from condgraph.engine.stored_schema import LEASE, PAUSE
from condgraph.engine.toml import read_file

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection


# -- Counts beyond the sample ------------------------------------------------------------------------
# A sample of the first nodes of a label tells nothing about the others. So for the properties that a program uses, the server
# counts over all nodes of labels that are larger than their sample: the types of the values, whether texts are numbers or
# dates, and whether they have white space to fold. That reads each of these nodes once per property, or fewer with an index of
# the property.


#: If at most this many nodes and relationships are not in the samples, a program that reads any property gets all properties
#: counted.
_ALL_COUNTED: Final = 200_000
#: Up to this many labels are searched one by one, so that an index of each can be used.
_MAX_SEPARATE: Final = 4
#: How many texts that do not fit a reading are tried before the reading is given up.
_TRIES: Final = 6
#: What is counted of a value `v`, by the labels or the type `of` its owner.
_COUNTED: Final = (
    f"RETURN of, {type_of('v')} AS type, count(*) AS count, {any_spaced('v')} AS spaced, "
    "max(CASE WHEN v IS :: LIST<ANY> THEN size(v) ELSE 0 END) AS longest, "
    f"min(CASE WHEN v IS :: STRING THEN left(v, {introspect.MAX_TEXT}) END) AS least, "
    f"max(CASE WHEN v IS :: STRING THEN left(v, {introspect.MAX_TEXT}) END) AS most"
)


def keys_of(plan: Node, mapping: Mapping) -> frozenset[str]:
    """Return the keys of the properties that a plan may read: those that its operators name, or all if one names none."""
    keys_by_name: dict[str, list[str]] = {}
    for node in mapping.nodes:
        for prop in node.properties:
            keys_by_name.setdefault(prop.predicate, []).append(prop.key)
    for relationship in mapping.relationships:
        for qualifier in relationship.qualifiers:
            keys_by_name.setdefault(named(relationship, qualifier), []).append(qualifier.key)
    result = set[str]()
    for part in (part for operator in postorder(plan) for part in _parts(operator)):
        if _names_none(part):
            result.update(mapping.unseen, *(keys_by_name.values() if mapping.beyond <= _ALL_COUNTED else ()))
        reads_times = isinstance(part, alg.StatementPattern) and part.during is not None
        if reads_times or isinstance(part, alg.During | alg.DuringAny | alg.WhereValidity | alg.Validity):
            result.update(keys_by_name.get(START_TIME, ()), keys_by_name.get(END_TIME, ()))
        if isinstance(part, str):
            result.update(keys_by_name.get(part, ()))
    return frozenset(result)


def _parts(value: Any) -> Iterator[Any]:
    """Yield the parts of an operator (patterns, expressions, names), without its input operators."""
    yield value
    inner = value if isinstance(value, tuple | list) else ()
    if is_dataclass(value) and not isinstance(value, type):
        inner = [getattr(value, field.name) for field in fields(value) if field.init]
    for item in inner:
        if not isinstance(item, Node):
            yield from _parts(item)


def _names_none(part: Any) -> bool:
    """Tell whether properties with any key may be read."""
    if isinstance(part, alg.StatementPattern):
        return part.family != "relation" and not isinstance(part.predicate, tuple)
    if isinstance(part, alg.Scan):
        return part.predicates is None and part.family != "relation"
    if isinstance(part, alg.QualifierPattern):
        return not isinstance(part.key, str)
    return isinstance(part, ex.Index) or (isinstance(part, ex.Call) and part.name in ("keys", "properties"))


def present(connection: Connection, mapping: Mapping, keys: Sequence[str]) -> list[str]:
    """Return the keys that anything outside the samples has; one query for each kind of owner."""
    result = set[str]()
    for match, owner in _everything(mapping):
        text = f"{match} UNWIND [k IN $keys WHERE {owner}[k] IS NOT NULL] AS key RETURN DISTINCT key"
        result |= {row["key"] for row in connection.read(text, {"keys": list(keys)})}
    return [key for key in keys if key in result]


def _everything(mapping: Mapping) -> Iterable[tuple[str, str]]:
    labels = [node.label for node in mapping.nodes if node.beyond]
    if non_empty := [label for label in labels if label]:
        yield f"MATCH (n:{'|'.join(map(quote, non_empty))})", "n"
    if "" in labels:
        yield "MATCH (n) WHERE size(labels(n)) = 0 WITH n", "n"
    if types := [relationship.type for relationship in mapping.relationships if relationship.beyond]:
        yield f"MATCH ()-[r:{'|'.join(map(quote, types))}]->()", "r"


def closer(
    connection: Connection, mapping: Mapping, keys: Iterable[str], texts: introspect.Texts, typing: introspect.Typing
) -> Mapping:
    """Return the mapping with the properties of some keys counted over all nodes and relationships.

    `texts` are the sampled texts; those that decide how texts are read are added to it.
    """
    for key in keys:
        check()
        mapping = _Key(connection, mapping, key, texts, typing).counted()
    return mapping


class _Key:
    """One key of properties, in one mapping."""

    def __init__(
        self, connection: Connection, mapping: Mapping, key: str, texts: introspect.Texts, typing: introspect.Typing
    ) -> None:
        self._connection, self._mapping, self._key, self._texts, self._typing = connection, mapping, key, texts, typing
        self._reasons: dict[str, str] = {}
        #: The longest list of each label or type.
        self._longest: dict[str, int] = {}

    def counted(self) -> Mapping:
        """Return the mapping with this key counted."""
        mapping, key = self._mapping, self._key
        return replace(
            mapping,
            nodes=self._nodes(),
            relationships=tuple(
                self._relationship(relationship) if relationship.beyond else relationship for relationship in mapping.relationships
            ),
            exact=mapping.exact | {key},
            unseen=tuple(item for item in mapping.unseen if item != key),
            reasons=mapping.reasons | self._reasons,
        )

    def _rows(self, match: str, owner: str, variable: str) -> list[dict[str, Any]]:
        value = f"{variable}.{quote(self._key)}"
        return self._connection.read(f"{match} WHERE {value} IS NOT NULL WITH {owner} AS of, {value} AS v {_COUNTED}", {})

    def _matches(self, labels: Sequence[str]) -> list[str]:
        """Return MATCH clauses for the nodes of some labels; a node may match more than one."""
        non_empty = [label for label in labels if label]
        label_groups = [[label] for label in non_empty] if len(non_empty) <= _MAX_SEPARATE else [non_empty]
        result = [f"MATCH (n:{'|'.join(map(quote, group))})" for group in label_groups]
        return [*result, *(["MATCH (n) WITH n WHERE size(labels(n)) = 0 WITH n"] if "" in labels else [])]

    # -- nodes -------------------------------------------------------------------------------------

    def _nodes(self) -> tuple[NodeType, ...]:
        sampled_labels = [node.label for node in self._mapping.nodes if node.beyond]
        node_of = {node.label: node for node in self._mapping.nodes}
        rows, groups = dict[tuple[tuple[str, ...], str], dict[str, Any]](), introspect.Groups()
        for match in self._matches(sampled_labels):
            for row in self._rows(match, "labels(n)", "n"):
                labels = [label for label in row["of"] or [""] if label in node_of]
                # A node with two of the labels matches under each.
                rows[tuple(labels), row["type"]] = row
                for label in labels:
                    groups.join(labels[0], [label])
        result = dict[str, Property]()
        for label in sampled_labels:
            if label_rows := [row for (labels, _), row in rows.items() if label in labels]:
                result[label] = self._property(self._property_of(node_of[label]), label_rows, node_of[label].count, label)
        for node in node_of.values():
            # A label that is wholly in its sample is read like the labels that it occurs together with.
            if node.label not in result and groups.of(node.label) in {groups.of(label) for label in result}:
                result.update((node.label, prop) for prop in node.properties if prop.key == self._key)
        labels_of_group: dict[str, list[str]] = {}
        for label in result:
            labels_of_group.setdefault(groups.of(label), []).append(label)
        for labels in labels_of_group.values():
            texts = {text for label in labels for text in self._texts.get(("node", label, self._key), ())}
            first = replace(result[labels[0]], types=tuple(kind for label in labels for kind in result[label].types))
            read, reason = self._read(replace(first, untidy=any(result[label].untidy for label in labels)), texts, labels)
            for label in labels:
                result[label] = replace(result[label], reading=read.reading, format=read.format, untidy=read.untidy)
                self._reason(f"node.{label}", reason)
        return tuple(
            self._with_property(node, result[node.label]) if node.label in result else node for node in self._mapping.nodes
        )

    def _property_of(self, owner: NodeType | RelationshipType) -> Property:
        properties = owner.properties if isinstance(owner, NodeType) else owner.qualifiers
        sampled = next((prop for prop in properties if prop.key == self._key), None)
        # Nobody has checked whether a property outside the sample has an index.
        return Property(self._key, self._key, (), 0) if sampled is None else sampled

    def _with_property(self, node: NodeType, prop: Property) -> NodeType:
        longest = self._longest.get(node.label, 0)
        vector = (
            introspect.is_vector(introspect.PropertySample(prop.key, prop.sampled, prop.types, longest=longest))
            and prop.key not in node.hidden
        )
        hidden = (*node.hidden, prop.key) if vector else node.hidden
        return replace(node, properties=_put(node.properties, prop), hidden=hidden)

    # -- relationships -----------------------------------------------------------------------------

    def _relationship(self, relationship: RelationshipType) -> RelationshipType:
        rows = self._rows(f"MATCH ()-[r:{quote(relationship.type)}]->()", "type(r)", "r")
        if not rows:
            return relationship
        result = self._property(self._property_of(relationship), rows, relationship.count, relationship.type, node=False)
        texts = set(self._texts.get(("relationship", relationship.type, self._key), ()))
        result, reason = self._read(result, texts, [relationship.type], node=False)
        self._reason(f"relationship.{relationship.type}", reason)
        return replace(relationship, qualifiers=_put(relationship.qualifiers, result))

    # -- what a property is ------------------------------------------------------------------------

    def _property(self, prop: Property, rows: list[dict[str, Any]], count: int, owner: str, *, node: bool = True) -> Property:
        types: Counter[str] = Counter()
        for row in rows:
            types[row["type"].removesuffix(" NOT NULL")] += row["count"]
        if INTEGERS in types and self._opaque(prop, owner, node=node):
            types[BYTES] += types.pop(INTEGERS)
        self._longest[owner] = max(row["longest"] for row in rows)
        sample_key = ("node" if node else "relationship", owner, self._key)
        extremes = [text for row in rows for text in (row["least"], row["most"]) if text is not None]
        self._texts[sample_key] = tuple(dict.fromkeys([*self._texts.get(sample_key, ()), *extremes]))
        ordered = tuple(sorted(types.items(), key=lambda item: (-item[1], item[0])))
        spaced = prop.untidy or any(row["spaced"] for row in rows)
        return replace(prop, types=ordered, sampled=max(count, sum(types.values())), untidy=spaced)

    def _opaque(self, prop: Property, of: str, *, node: bool) -> bool:
        """Tell whether lists of integers are byte arrays, which the server does not tell apart."""
        if prop.types:
            return any(kind == BYTES for kind, _ in prop.types)
        match, owner = self._match_of([of], node=node)
        source = f"{owner}.{quote(self._key)}"
        rows = self._connection.values(f"{match} WHERE {source} IS :: {INTEGERS} NOT NULL RETURN {source} LIMIT 1", {})
        return any(isinstance(value, (bytes, bytearray)) for (value,) in rows)

    def _match_of(self, names: Sequence[str], *, node: bool) -> tuple[str, str]:
        """Return a MATCH of the nodes of some labels, or of the relationships of some types."""
        if not node:
            return f"MATCH ()-[r:{'|'.join(map(quote, names))}]->()", "r"
        if "" in names:
            return f"MATCH (n) WITH n WHERE {within_labels('n', names)} WITH n", "n"
        return f"MATCH (n:{'|'.join(map(quote, names))})", "n"

    def _read(self, prop: Property, texts: set[str], names: Sequence[str], *, node: bool = True) -> tuple[Property, str | None]:
        """Return a property with the reading that fits every one of its texts, and the reason."""
        itself = replace(prop, reading="itself", format=None)
        if prop.untidy or not texts or not any("STRING" in kind for kind, _ in prop.types):
            return itself, None
        match, owner = self._match_of(names, node=node)
        for _ in range(_TRIES):
            read, reason = introspect.read_as(itself, sorted(texts), self._typing)
            if reason is None:
                return read, None
            misfit = self._misfit(read, match, f"{owner}.{quote(self._key)}")
            if misfit is None:
                return read, reason.replace(f"all {len(texts)} different texts of the sample", "all texts")
            texts.add(misfit)
        return itself, None

    def _misfit(self, prop: Property, match: str, value: str) -> str | None:
        """Return a text that a reading does not fit, or None if there is none."""
        form = format_of(prop)
        read = f"x =~ {literal(NUMBER)}" if form is None else f"({form.start('x')}) IS NOT NULL"
        each = f"CASE WHEN {value} IS :: LIST<ANY> THEN [y IN {value} WHERE y IS :: STRING NOT NULL] ELSE [{value}] END"
        text = f"{match} WHERE {value} IS :: STRING NOT NULL | LIST<STRING NOT NULL> NOT NULL UNWIND {each} AS x"
        (row,) = self._connection.read(f"{text} WITH x WHERE NOT ({read}) RETURN min(left(x, {introspect.MAX_TEXT})) AS odd", {})
        return None if row["odd"] is None else str(row["odd"])

    def _reason(self, about: str, reason: str | None) -> None:
        if reason is not None:
            self._reasons[f"{about}.property.{self._key}"] = reason


def _put(properties: Sequence[Property], prop: Property) -> tuple[Property, ...]:
    """Return properties with one added in key order, replacing the one with the same key."""
    remaining = [other for other in properties if other.key != prop.key]
    return tuple(sorted([*remaining, prop], key=lambda item: item.key))


def named_in(content: dict[str, Any], mapping: Mapping) -> list[str]:
    """Return the keys that a mapping file names for labels and types whose samples do not have them."""
    all_keys = mapping.keys | set(mapping.unseen)
    sampled_keys = {("node", node.label): {prop.key for prop in node.properties} for node in mapping.nodes if node.beyond}
    sampled_keys |= {
        ("relationship", relationship.type): {qualifier.key for qualifier in relationship.qualifiers}
        for relationship in mapping.relationships
        if relationship.beyond
    }
    result: list[str] = []
    for kind, tables in content.items():
        for name, table in tables.items() if isinstance(tables, dict) else ():
            if (own_keys := sampled_keys.get((kind, name))) is not None:
                result += [text for text in _texts_in(table) if text in all_keys and text not in own_keys]
    return list(dict.fromkeys(result))


def _texts_in(part: Any) -> Iterable[str]:
    """Yield all keys and texts in a part of a file."""
    if isinstance(part, str):
        yield part
    for item in (*part, *part.values()) if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _texts_in(item)


# -- The current mapping -----------------------------------------------------------------------------


T = TypeVar("T", NodeType, RelationshipType)
#: The most seconds that counting properties may take; it also gets at most half of what a call has left.
MAX_COUNTING: Final = 20.0
#: The most nodes of a label that are searched for two with the same id.
_COUNTED_AT_ONCE: Final = 200_000


class CurrentMapping:
    """The mapping of a database, kept up to date. `file` is the path of a mapping file."""

    def __init__(
        self,
        connection: Connection,
        typing: introspect.Typing,
        file: str | os.PathLike[str] | None = None,
        *,
        lease: float = LEASE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection, self._typing, self._lease, self._clock = connection, typing, lease, clock
        self._content: dict[str, Any] = {} if file is None else read_file(file)
        self._lock = Lock()
        self._mapping: Mapping | None = None
        self._counts: introspect.Counts | None = None
        #: The guess without the file, the texts sampled for it, and answers of `_shared`.
        self._guess: Mapping | None = None
        self._texts: introspect.Texts = {}
        self._shared_values: dict[tuple[str, str], bool] = {}
        #: When counts were last read, when everything was last looked at, and how long that took.
        self._counted_at = self._looked_at = self._took = 0.0

    @property
    def age(self) -> float:
        """Seconds since everything was looked at; infinite if it never was."""
        return float("inf") if self._mapping is None else self._clock() - self._looked_at

    def refresh(self) -> None:
        """Forget everything, so that it is looked at again."""
        self._mapping = None

    def expire(self) -> None:
        """Let the counts be read again, whatever the lease."""
        self._counted_at = float("-inf")

    def mapping(self) -> Mapping:
        """Return the current mapping: the same object as long as no change is known."""
        wait_for(self._lock)
        try:
            result = self._mapping
            if result is None:
                return self._look(first=self._counts is None)
            if self._clock() - self._counted_at <= self._lease:
                return result
            now = introspect.counts(self._connection)
            self._counted_at = self._clock()
            previous = self._counts
            assert previous is not None
            if now.mark == previous.mark:
                return result
            same_names = now.labels.keys() == previous.labels.keys() and now.types.keys() == previous.types.keys()
            # If counts change all the time, not every change leads to another look; new or lost labels or types do.
            if not same_names or self._clock() - self._looked_at > PAUSE * self._took:
                return self._look(first=False)
            self._counts = now
            assert self._guess is not None
            self._guess, self._mapping = _recounted(self._guess, now), _recounted(result, now)
            return self._mapping
        finally:
            self._lock.release()

    def closer(self, keys: Callable[[Mapping], Collection[str]]) -> Mapping:
        """Return the mapping with the properties of some keys counted over all nodes and relationships.

        It is the same object if there is nothing to count. Keys that would take too much of the call's remaining time are not
        counted but listed in `unsure`.
        """
        result = self.mapping()
        if not result.beyond:
            return result
        missing = [key for key in keys(result) if key not in result.exact]
        if not missing:
            return result
        wait_for(self._lock)
        try:
            guess = self._guess
            if guess is None or self._mapping is None:
                return result
            begin = self._clock()
            missing = [key for key in missing if key not in guess.exact]
            guess = self._counted(guess, missing)
            self._guess = guess
            self._mapping = self._applied(replace(guess, mark=self._mapping.mark))
            self._took += self._clock() - begin
            return self._mapping
        finally:
            self._lock.release()

    def _counted(self, guess: Mapping, wanted: Sequence[str]) -> Mapping:
        """Return a guess with some keys counted, as far as time allows; keys that nothing has are dropped from `unseen`."""
        seconds_left = left()
        with within(MAX_COUNTING if seconds_left is None else min(MAX_COUNTING, seconds_left / 2)):
            try:
                unseen = [key for key in wanted if key in guess.unseen]
                existing = present(self._connection, guess, unseen) if unseen else []
                guess = replace(guess, unseen=tuple(key for key in guess.unseen if key not in unseen or key in existing))
                for key in wanted:
                    if key in existing or key not in unseen:
                        guess = closer(self._connection, guess, [key], self._texts, self._typing)
            except DeadlineError:
                pass
        check()
        uncounted = [key for key in wanted if key not in guess.exact and (key not in unseen or key in guess.unseen)]
        return replace(guess, exact=guess.exact | frozenset(wanted), unsure=guess.unsure | frozenset(uncounted))

    def _look(self, *, first: bool) -> Mapping:
        begin, self._texts, self._shared_values = self._clock(), {}, {}
        guess = introspect.look(self._connection, self._typing, self._texts)
        # Properties that a file names may be missing from the samples.
        extra_keys = named_in(self._content, guess)
        self._guess = self._counted(guess, extra_keys) if extra_keys else guess
        try:
            result = self._applied(self._guess)
        except OptionError as error:
            if first:
                raise
            # The file was right when the graph was opened; the database has since lost something that it names.
            raise OptionError(f"the database has changed: {error.message}", hint=error.hint, candidates=error.candidates) from None
        self._counts = introspect.Counts(
            {node.label: node.count for node in result.nodes if node.label},
            {relationship.type: relationship.count for relationship in result.relationships},
            *(result.node_count, result.relationship_count, result.mark),
        )
        self._mapping, self._counted_at = result, self._clock()
        self._looked_at, self._took = self._counted_at, self._counted_at - begin
        return result

    def _applied(self, guess: Mapping) -> Mapping:
        return applied(self._content, guess, self._texts, self._shared)

    def _shared(self, label: str, key: str) -> bool:
        """Tell whether two nodes of a label have the same value of a property, in a sample if there are too many nodes."""
        if (label, key) not in self._shared_values:
            self._shared_values[label, key] = self._has_repeats(label, key)
        return self._shared_values[label, key]

    def _has_repeats(self, label: str, key: str) -> bool:
        limit = _COUNTED_AT_ONCE if (self._count(label)) <= _COUNTED_AT_ONCE else introspect.SAMPLE
        text = (
            f"MATCH (n:{quote(label)}) WITH n LIMIT {limit} WITH toStringOrNull(n.{quote(key)}) AS v WHERE v IS NOT NULL "
            "WITH v, count(*) AS times WHERE times > 1 RETURN v LIMIT 1"
        )
        return bool(self._connection.read(text, {}))

    def _count(self, label: str) -> int:
        rows = self._connection.ask(f"MATCH (n:{quote(label)}) RETURN count(n) AS count", {})
        return int(rows[0]["count"])


def _recounted(mapping: Mapping, now: introspect.Counts) -> Mapping:
    """Return the same schema with other counts."""

    def recounted(item: T, count: int) -> T:
        return replace(item, count=count, beyond=max(0, item.beyond + count - item.count))

    nodes = tuple(recounted(node, now.labels.get(node.label, node.count)) for node in mapping.nodes)
    relationships = tuple(recounted(relationship, now.types[relationship.type]) for relationship in mapping.relationships)
    counted = {"node_count": now.nodes, "relationship_count": now.relationships, "mark": now.mark}
    return replace(mapping, nodes=nodes, relationships=relationships, **counted)  # type: ignore[arg-type]
