"""Looks at an existing database: counts, constraints, indexes, samples of each label and type, and a mapping guessed from them."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from condgraph.cypher import labels as carried
from condgraph.cypher.layout.schema import quote
from condgraph.cypher.native import values as properties
from condgraph.cypher.native.identity import OWN, own_only
from condgraph.cypher.native.mapping import Mapping, NodeType, Property, RelationshipType
from condgraph.engine.bounds import check
from condgraph.engine.errors import DeadlineError, OptionError, StoreError
from condgraph.engine.values import NO_UNIT, Precision, Quantity, Time, Value, collapse, parse_number

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection


# -- Guesses from samples ----------------------------------------------------------------------------
# Which properties name nodes, and which texts are numbers or dates. Every choice comes with its reason.
#
# A name that is not unique, or belongs to something else (the ship of an order), is worse than none: without one, a node is
# called by its label and its key.


#: How the table loader reads a column with a header: the value of each text, None if it counts as missing. It is passed in,
#: since loaders are a layer above stores.
Typing: TypeAlias = Callable[[Sequence[str], str], list[Value | None]]

#: The most characters kept of a text in a sample.
MAX_TEXT: Final = 100
_FORMATS: Final = (
    *(properties.ISO_DATE, "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d"),
    *("%d %B %Y", "%B %d, %Y", "%d %b %Y", "%b %d, %Y", "%Y-%m", "%Y"),
    *("%Y-%m-%d 00:00:00", "%Y-%m-%d 00:00:00.000", "%Y-%m-%dT00:00:00", "%Y-%m-%dT00:00:00Z", "%m/%d/%Y 00:00:00"),
)
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+").findall
#: Words that are names by themselves, best first.
_NAMES: Final = ("name", "title", "fullname", "displayname", "label", "caption", "headline", "subject", "heading")
#: If no property is called like a name, short unique texts serve: first properties with these keys, then texts of words, then
#: codes.
_DESCRIBING: Final = ("desc", "description", "shortdescription", "summary", "text")
_SHORT: Final = 60
#: Keys whose texts are no use as a name, and the pattern of texts that no person wrote.
_SECRET: Final = frozenset(["password", "passwd", "pwd", "hash", "token", "secret", "salt", "checksum", "digest"])
_MACHINE: Final = re.compile(
    r"[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|[0-9a-fA-F]{16,}|[A-Za-z0-9+/=_-]{32,}|\d{4}-\d\d.*|\W*\d[\d\W]*[A-Z]?"
).fullmatch
_FIRST: Final = ("firstname", "forename", "givenname", "first", "given")
_LAST: Final = ("lastname", "surname", "familyname", "last", "family")
#: Words before "name" that make it the name of something else.
_OTHERS: Final = frozenset(
    [
        "contact",
        "ship",
        "shipping",
        "user",
        "file",
        "short",
        "nick",
        "middle",
        "maiden",
        "host",
        "domain",
        "path",
        "class",
        "type",
        "event",
        "method",
        "column",
        "table",
    ]
)


@dataclass(frozen=True, slots=True)
class PropertySample:
    """What a sample tells of a property.

    `sampled` is how many things were looked at; `types` has how many of them had each type. `texts` (cut to `MAX_TEXT`) and
    `whole` are distinct texts and whole numbers. `distinct` is how many different values there are, `longest` the longest list.
    """

    key: str
    sampled: int
    types: tuple[tuple[str, int], ...]
    texts: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    distinct: int = 0
    longest: int = 0
    #: Whether some text has white space to fold.
    spaced: bool = False

    @property
    def count(self) -> int:
        """How many things have it."""
        return sum(count for _, count in self.types)


def name_of(label: str, samples: Sequence[PropertySample], unique: str | None) -> tuple[tuple[str, ...], str]:
    """Return the properties that together name the nodes of a label (none if none fits), and why."""
    ranked = sorted(
        ((rank, sample.key, sample) for sample in samples if (rank := _rank(label, sample)) is not None),
        key=lambda candidate: candidate[:2],
    )
    if not ranked and unique is None:
        ranked = sorted((rank, sample.key, sample) for sample in samples if (rank := _content_rank(sample)) is not None)
    if not ranked:
        fallback = f"its unique property {unique!r}" if unique else "the number of the server"
        return (), f"no text is a name: a node is called by its label and {fallback}"
    rank, key, best = ranked[0]
    by_word = {_folded(sample.key): sample for sample in samples if _is_text(sample)}
    last = next((by_word[word] for word in _LAST if word in by_word), None)
    first = next((by_word[word] for word in _FIRST if word in by_word), None)
    if first is not None and last is not None and (rank >= 3 or key in (first.key, last.key)):
        return (first.key, last.key), f"{first.key!r} and {last.key!r} together; {_measured(first)}, {_measured(last)}"
    if _distinct_share(best) < 0.9 and last is not None and last is not best:
        return (key, last.key), f"{key!r} does not tell apart, with {last.key!r} it does better; {_measured(best)}"
    return (key,), f"{_measured(best)}"


def _measured(sample: PropertySample) -> str:
    return f"{sample.key!r}: {sample.count} of {sample.sampled} sampled have it, {_distinct_share(sample):.0%} of these different"


def _rank(label: str, sample: PropertySample) -> int | None:
    """Return how well a property suits as a name: 0 is best, None if it does not."""
    if not _is_text(sample) or not sample.count or not sample.texts:
        return None
    # Graphs made from RDF have a prefix before their keys: rdfs__label.
    filled_share, distinct_share, folded = (
        sample.count / sample.sampled,
        _distinct_share(sample),
        _folded(sample.key.rpartition("__")[2]).replace("preflabel", "label"),
    )
    words = [word.casefold() for word in _WORDS(sample.key)]
    if sorted(map(len, sample.texts))[len(sample.texts) // 2] >= MAX_TEXT or any(map(_address, sample.texts[:20])):
        return None
    label_names = {_folded(label) + word for word in ("name", "title", "label")}
    if filled_share < 0.5:
        return None
    if folded in label_names or folded in _NAMES:
        # Few values shared by many nodes are a kind, whatever the property is called.
        if distinct_share < 0.05 and sample.count > 20:
            return None
        return 0 if folded in label_names else 1 + _NAMES.index(folded) // 3
    if folded in _FIRST or folded in _LAST:
        return 4
    if words and words[-1] in ("name", "title") and distinct_share >= 0.9 and filled_share >= 0.9:
        return 6 if words[0] in _OTHERS else 5
    return None


def _content_rank(sample: PropertySample) -> int | None:
    """Return how well a property suits that is not called like a name: 7 is best, None if it does not."""
    if not _is_text(sample) or sample.count < 0.9 * sample.sampled or _distinct_share(sample) < 0.95 or sample.spaced:
        return None
    words = {word.casefold() for word in _WORDS(sample.key)}
    machine_made = sum(bool(_MACHINE(text)) or _address(text) or not any(c.isalpha() for c in text) for text in sample.texts)
    lengths = sorted(map(len, sample.texts))
    if words & _SECRET or machine_made * 10 > len(sample.texts) or not lengths or lengths[len(lengths) * 9 // 10] > _SHORT:
        return None
    if _folded(sample.key) in _DESCRIBING:
        return 7
    return 8 if sum(any(c.islower() for c in text) for text in sample.texts) * 2 > len(sample.texts) else 9


def _distinct_share(sample: PropertySample) -> float:
    return sample.distinct / sample.count if sample.count else 0.0


def _is_text(sample: PropertySample) -> bool:
    texts = sum(count for name, count in sample.types if name == "STRING")
    return texts > 0 and texts >= 0.9 * sample.count


def _folded(key: str) -> str:
    return "".join(c for c in key.casefold() if c.isalnum())


def _address(text: str) -> bool:
    return "://" in text or ("@" in text and " " not in text and "." in text)


def read_as(prop: Property, texts: Sequence[str], typing: Typing) -> tuple[Property, str | None]:
    """Return a property with the reading of its text, and the reason if that is not plain text.

    `texts` are all different texts of the sample; each must be read as the table loader reads it.
    """
    untidy = prop.untidy or any(collapse(text) != text for text in texts)
    prop = replace(prop, untidy=untidy)
    # A text that was cut is longer than any number or date.
    if not texts or untidy or any(len(text) >= MAX_TEXT for text in texts):
        return prop, None
    values = typing(texts, prop.key)
    if all(isinstance(value, Quantity) and value.unit == NO_UNIT for value in values):
        if all(re.fullmatch(properties.NUMBER, text) for text in texts) and values == [
            Quantity(parse_number(text)) for text in texts
        ]:
            return replace(prop, reading="number"), f"all {len(texts)} different texts of the sample are numbers; no index applies"
        return prop, None
    times = [value for value in values if isinstance(value, Time)]
    if len(times) < len(texts):
        return prop, None
    if all(time.precision is Precision.SECOND for time in times):
        form = properties.time_format(properties.ISO_DATETIME, moment=True)
        if [form.read(text) for text in texts] == times:
            return replace(
                prop, reading="datetime"
            ), f"all {len(texts)} different texts of the sample are moments; no index applies"
    for text_format in _FORMATS:
        if [properties.time_format(text_format).read(text) for text in texts] == times:
            chosen = replace(prop, reading="date", format=None if text_format == properties.ISO_DATE else text_format)
            return chosen, f"all {len(texts)} different texts of the sample are dates as {text_format}; no index applies"
    return prop, None


def check_reading(prop: Property, texts: Sequence[str]) -> None:
    """Raise `OptionError` if a property's reading fits nothing in the sample; the hint names a format that fits more.

    `texts` are the texts and the whole numbers of the sample.
    """
    form = properties.format_of(prop)
    if prop.format is None and any(name in ("DATE", "LOCAL DATETIME", "ZONED DATETIME") for name, _ in prop.types):
        # It has times already; other text is read where possible.
        return
    if form is not None and not any(form.read(text) is not None for text in texts):
        counts = {
            text_format: sum(properties.time_format(text_format).read(text) is not None for text in texts)
            for text_format in _FORMATS
        }
        best_format = max(counts, key=lambda text_format: counts[text_format])
        matches = counts[best_format]
    elif prop.reading == "number" and not any(re.fullmatch(properties.NUMBER, text) for text in texts):
        best_format, matches = "", 0
    else:
        return
    if all(name != "STRING" and (form is None or name != "INTEGER") for name, _ in prop.types):
        kinds = " and ".join(name for name, _ in prop.types) or "nothing"
        raise OptionError(f"{prop.key!r} is {kinds}, and no text that could be read as {prop.reading}", hint="leave `as` out")
    subject = f"the format {form.format!r}" if form is not None else "a number without unit"
    example = f"they are such as {texts[0]!r}" if texts else "there is no text in the sample"
    hint = f"{best_format!r} reads {matches} of them" if matches else example
    raise OptionError(f"{subject} reads none of the {len(texts)} different values of {prop.key!r} in the sample", hint=hint)


# -- The look ----------------------------------------------------------------------------------------
# Nothing is scanned: counts are the server's own, samples are the first `SAMPLE` nodes of each label. What the user has no
# right to read is left out and reported in `warnings`.


#: How many nodes of a label, and relationships of a type, are looked at. With very many labels and types it is fewer, to stay
#: within `MAX_SAMPLED` in all, but at least `MIN_SAMPLED`.
SAMPLE: Final = 1_000
MAX_SAMPLED: Final = 200_000
MIN_SAMPLED: Final = 20
#: A list of at least this many numbers is a vector, which is not an attribute.
VECTOR: Final = 64
#: How many nodes are searched for those without a label, which no counter of the server gives.
_COUNTED: Final = 100_000
#: The most counting queries that are joined into one text.
_JOINED: Final = 50
#: The most samples that one query takes.
_AT_ONCE: Final = 20

_STATS: Final = "CALL db.stats.retrieve('GRAPH COUNTS') YIELD data RETURN data.nodes AS nodes, data.relationships AS relationships"
_KEYS: Final = "CALL db.propertyKeys() YIELD propertyKey AS key RETURN key ORDER BY key"
#: For servers that do not list keys: reads all nodes and relationships.
_ALL_KEYS: Final = (
    "MATCH (x) UNWIND keys(x) AS key RETURN DISTINCT key UNION MATCH ()-[x]->() UNWIND keys(x) AS key RETURN DISTINCT key"
)
_UNLABELLED: Final = f"MATCH (n) WITH n LIMIT {_COUNTED} WHERE size(labels(n)) = 0 RETURN count(n) AS count"
_INDEXES: Final = (
    "SHOW INDEXES YIELD type, entityType, labelsOrTypes, properties, state "
    "WHERE type <> 'LOOKUP' RETURN entityType = 'NODE' AS node, labelsOrTypes AS names, properties AS keys, "
    "type = 'RANGE' AND state = 'ONLINE' AND size(properties) = 1 AS seeks"
)
_CONSTRAINTS: Final = (
    "SHOW CONSTRAINTS YIELD type, entityType, labelsOrTypes, properties "
    "WHERE entityType = 'NODE' AND size(properties) = 1 AND (type CONTAINS 'UNIQUENESS' OR type CONTAINS 'NODE_KEY') "
    "RETURN labelsOrTypes[0] AS label, properties[0] AS key, type CONTAINS 'NODE_KEY' AS always ORDER BY label, key"
)
#: A short query takes a sample. Other queries look at it by the server's ids; their texts are the same for all labels and
#: types, so they are planned only once.
_NODES: Final = "UNWIND $ids AS i MATCH (x) WHERE elementId(x) = i WITH x"
_RELATIONSHIPS: Final = "UNWIND $ids AS i MATCH (a)-[x]->(b) WHERE elementId(x) = i WITH a, x, b"
_LABELS: Final = f"{_NODES} RETURN DISTINCT labels(x) AS labels"
_ENDS: Final = "RETURN labels(a) AS a, labels(b) AS b, count(*) AS count"
_SAMPLE: Final = (
    f"UNWIND keys(x) AS key WITH key, x[key] AS v "
    f"WITH key, v, {properties.type_of('v')} AS type, CASE WHEN v IS :: STRING THEN left(v, {MAX_TEXT}) END AS text "
    f"RETURN key, type, count(*) AS count, {properties.any_spaced('v', MAX_TEXT)} AS spaced, "
    "count(DISTINCT v) AS distinct, collect(DISTINCT text) AS texts, "
    "collect(DISTINCT CASE WHEN v IS :: INTEGER THEN toString(v) END)[..100] AS whole, "
    "max(CASE WHEN v IS :: LIST<ANY> THEN size(v) ELSE 0 END) AS longest, "
    "head(collect(CASE WHEN v IS :: LIST<INTEGER NOT NULL> AND size(v) < 1000 AND size(v) > 0 THEN v END)) AS listed"
)


#: The sampled texts of a property, by "node" or "relationship", label or type, and key.
Texts: TypeAlias = dict[tuple[str, str, str], tuple[str, ...]]


@dataclass(slots=True)
class Counts:
    """How many nodes and relationships there are, by the server's own counts."""

    labels: dict[str, int]
    types: dict[str, int]
    nodes: int
    relationships: int
    #: Identifies this state of the counts.
    mark: str


@dataclass(slots=True)
class _Notes:
    reasons: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def counts(connection: Connection, warnings: list[str] | None = None) -> Counts:
    """Return the counts of everything that is not condgraph's own."""
    try:
        nodes, relationships = _statistics(connection)
    except StoreError as error:
        if warnings is not None:
            warnings.append(f"the server's statistics may not be read, its counters were asked one by one: {error.message}")
        nodes, relationships = _counted(connection)
    labels = {row["label"]: row["count"] for row in nodes if "label" in row}
    types: Counter[str] = Counter()
    own_types = Counter[str]()
    for row in relationships:
        if "relationshipType" not in row:
            continue
        if row.get("startLabel") in OWN:
            if own_only(row["startLabel"]):
                own_types[row["relationshipType"]] += row["count"]
        elif "startLabel" not in row and "endLabel" not in row:
            types[row["relationshipType"]] += row["count"]
    total = next((row["count"] for row in nodes if "label" not in row), 0)
    foreign = {label: count for label, count in carried.others(connection, labels).items() if count and label not in OWN}
    foreign_types = {name: count - own_types[name] for name, count in types.items() if count - own_types[name] > 0}
    total -= sum(count for label, count in labels.items() if label in OWN and own_only(label))
    serialised = json.dumps([sorted(foreign.items()), sorted(foreign_types.items()), total])
    mark = hashlib.sha256(serialised.encode()).hexdigest()[:16]
    return Counts(dict(sorted(foreign.items())), dict(sorted(foreign_types.items())), total, sum(foreign_types.values()), mark)


def _statistics(connection: Connection) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return what the server's statistics tell of nodes and relationships."""
    if not connection.engine.statistics:
        return _counted(connection)
    (row,) = connection.ask(_STATS, {})
    return row["nodes"], row["relationships"]


def _counted(connection: Connection) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the same from the count store, one number per query."""
    labels = [row["label"] for row in connection.ask("CALL db.labels() YIELD label RETURN label", {})]
    names = [row["name"] for row in connection.ask("CALL db.relationshipTypes() YIELD relationshipType AS name RETURN name", {})]
    nodes = [{"count": connection.ask("MATCH (n) RETURN count(n) AS count", {})[0]["count"]}]
    texts = [(f"MATCH (n:{quote(label)})", "label, count(n) AS count", label) for label in labels]
    nodes += _united(connection, texts)
    ends = [label for label in labels if label in OWN and own_only(label)]
    queries = [
        (f"MATCH ()-[r:{quote(name)}]->()", "relationshipType, null AS startLabel, count(r) AS count", name) for name in names
    ]
    result = [{key: value for key, value in row.items() if value is not None} for row in _united(connection, queries)]
    for end in ends:
        queries = [
            (f"MATCH (:{end})-[r:{quote(name)}]->()", f"relationshipType, '{end}' AS startLabel, count(r) AS count", name)
            for name in names
        ]
        result += _united(connection, queries)
    return nodes, result


def _united(connection: Connection, texts: list[tuple[str, str, str]]) -> list[dict[str, Any]]:
    """Return the rows of queries, each given as a match, what to return after a name, and the name."""
    result = []
    for start in range(0, len(texts), _JOINED):
        batch = texts[start : start + _JOINED]
        text = " UNION ALL ".join(f"{match} RETURN $p{number} AS {columns}" for number, (match, columns, _) in enumerate(batch))
        result += connection.ask(text, {f"p{number}": name for number, (*_, name) in enumerate(batch)})
    return result


def sample_size(labels: int, types: int) -> int:
    """Return how many nodes of each label, and relationships of each type, are looked at."""
    return max(MIN_SAMPLED, min(SAMPLE, MAX_SAMPLED // max(1, labels + types)))


def look(connection: Connection, typing: Typing, texts: Texts | None = None) -> Mapping:
    """Return the guessed mapping of a database.

    `texts` is filled with what was sampled of each property: its texts, and its whole numbers as text.
    """
    sampled = {} if texts is None else texts
    notes = _Notes()
    counted = counts(connection, notes.warnings)
    indexed = _Indexed.of(_read_or_note(connection, _INDEXES, "indexes", notes))
    unique: dict[str, list[str]] = {}
    for row in sorted(_read_or_note(connection, _CONSTRAINTS, "constraints", notes) or [], key=lambda row: not row["always"]):
        unique.setdefault(row["label"], []).append(row["key"])
    most = sample_size(len(counted.labels), len(counted.types))
    unlabelled = _unlabelled(connection, counted, notes)
    labels = [*counted.labels.items(), *([("", unlabelled)] if unlabelled else [])]
    samples_of, groups = {}, Groups()
    samples = _samples(connection, [_pattern(label) for label, _ in labels], most)
    for (label, count), ids in zip(labels, samples, strict=True):
        check()
        samples_of[label] = _seen(connection, _NODES, ids, min(count, most))
        for row in connection.ask(_LABELS, {"ids": ids}):
            groups.join(label, row["labels"])
    # A node with several labels has one reading of each property, so texts of labels that occur together are judged together.
    pooled: dict[tuple[str, str], set[str]] = {}
    for label, result in samples_of.items():
        for sample in result:
            sampled["node", label, sample.key] = (*sample.texts, *sample.whole)
            pooled.setdefault((groups.of(label), sample.key), set()).update(sample.texts)
    nodes = []
    for label, count in labels:
        pool = {sample.key: sorted(pooled[groups.of(label), sample.key]) for sample in samples_of[label]}
        node = _node(label, count, samples_of[label], pool, unique.get(label, []), indexed, notes, typing)
        nodes.append(replace(node, beyond=max(0, count - most)))
    relationships = []
    seeks = connection.engine.seeks_relationships
    patterns = [f"MATCH ()-[x:{quote(name)}]->()" for name in counted.types]
    samples = _samples(connection, patterns, most) if seeks else iter([[]] * len(patterns))
    for (name, count), ids in zip(counted.types.items(), samples, strict=True):
        check()
        match = _RELATIONSHIPS if seeks else f"MATCH (a)-[x:{quote(name)}]->(b) WITH a, x, b LIMIT {most}"
        ends = connection.ask(f"{match} {_ENDS}", {"ids": ids})
        result = _seen(connection, match, ids, min(count, most))
        sampled |= {("relationship", name, sample.key): (*sample.texts, *sample.whole) for sample in result}
        relationship = _relationship(name, count, min(count, most), ends, result, indexed, notes, typing)
        relationships.append(replace(relationship, beyond=max(0, count - most)))
    return Mapping(
        tuple(nodes),
        tuple(relationships),
        *(counted.nodes, counted.relationships, unlabelled, counted.mark),
        notes.reasons,
        tuple(notes.warnings),
        unseen=_unseen(connection, nodes, relationships, notes),
        whole_ids=not connection.engine.numbered_nodes,
    )


def _unseen(connection: Connection, nodes: list[NodeType], relationships: list[RelationshipType], notes: _Notes) -> tuple[str, ...]:
    """Return keys of properties that no sample has; the server lists every key it ever had."""
    if not any(node.beyond for node in nodes) and not any(relationship.beyond for relationship in relationships):
        return ()
    query = _KEYS if connection.engine.lists_keys else _ALL_KEYS
    try:
        rows = _read_or_note(connection, query, "property keys", notes)
    except DeadlineError:
        check()
        notes.warnings.append("the property keys of the database could not be listed in time: those of the samples are known")
        return ()
    sampled = {prop.key for node in nodes for prop in node.properties} | {
        prop.key for relationship in relationships for prop in relationship.qualifiers
    }
    return tuple(row["key"] for row in rows or () if row["key"] not in sampled)


def _read_or_note(connection: Connection, text: str, what: str, notes: _Notes) -> list[dict[str, Any]] | None:
    """Return the rows, or None if they may not be read."""
    try:
        return connection.ask(text, {})
    except StoreError as error:
        notes.warnings.append(f"the {what} of the database may not be read: {error.message}")
        return None


@dataclass(frozen=True, slots=True)
class _Indexed:
    """Which indexes the server has on properties of nodes (True) or relationships (False), by name and key.

    `seeks` has range indexes on the property alone that are ready; `any` has all indexes. `known` is False if the user may not
    list them.
    """

    seeks: frozenset[tuple[bool, str, str]]
    any: frozenset[tuple[bool, str, str]]
    known: bool

    @classmethod
    def of(cls, rows: list[dict[str, Any]] | None) -> _Indexed:
        """Return the indexes listed in the server's rows."""
        indexes = [((row["node"], name, key), row["seeks"]) for row in rows or () for name in row["names"] for key in row["keys"]]
        return cls(
            frozenset(index for index, seeks in indexes if seeks), frozenset(index for index, _ in indexes), rows is not None
        )

    def property(self, node: bool, name: str, sample: PropertySample) -> Property:
        """Return a property with what is known of its indexes."""
        index = node, name, sample.key
        unindexed = self.known and index not in self.any
        indexed = index in self.seeks
        return Property(
            sample.key, sample.key, sample.types, sample.sampled, indexed=indexed, unindexed=unindexed, untidy=sample.spaced
        )


def _unlabelled(connection: Connection, counted: Counts, notes: _Notes) -> int:
    least = max(0, counted.nodes - sum(counted.labels.values()))
    if counted.nodes <= _COUNTED // 2:
        return int(connection.ask(_UNLABELLED, {})[0]["count"])
    if least:
        notes.warnings.append(f"at least {least:,} nodes have no label; in a database of this size they are not counted")
    return least


def _pattern(label: str) -> str:
    if label:
        return f"MATCH (x:{quote(label)})"
    return f"MATCH (x) WITH x LIMIT {_COUNTED} WHERE size(labels(x)) = 0"


class Groups:
    """Labels that occur together on a node, directly or through others."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}

    def of(self, label: str) -> str:
        """Return the label that represents all labels that occur together with this one."""
        while (above := self._parents.get(label, label)) != label:
            label = above
        return label

    def join(self, label: str, others: list[str]) -> None:
        """Record that some labels occur together with another."""
        for other in others:
            first, second = sorted((self.of(label), self.of(other)))
            self._parents[second] = first


def _node(
    label: str,
    count: int,
    seen: list[PropertySample],
    texts: dict[str, list[str]],
    unique: list[str],
    indexed: _Indexed,
    notes: _Notes,
    typing: Typing,
) -> NodeType:
    about = f"node.{label}"
    key = unique[0] if unique else None
    if key is not None:
        alternatives = f"; {', '.join(unique[1:])} would do as well" if unique[1:] else ""
        notes.reasons[f"{about}.id"] = f"a constraint says that it is unique{alternatives}"
    else:
        notes.reasons[f"{about}.id"] = "no constraint makes a property unique: ids are the server's own, which are not stable"
    name, notes.reasons[f"{about}.name"] = name_of(label, seen, key)
    hidden = tuple(sample.key for sample in seen if is_vector(sample))
    for vector in hidden:
        notes.warnings.append(
            f"{vector!r} of {label} has lists of {VECTOR} numbers or more, which are not attributes: it is hidden"
        )
        notes.reasons[f"{about}.hide"] = "long lists of numbers are vectors"
    result = []
    for sample in seen:
        prop = indexed.property(True, label, sample)
        prop, reason = read_as(prop, texts[sample.key], typing)
        if reason is not None:
            notes.reasons[f"{about}.property.{sample.key}"] = reason
        result.append(prop)
    return NodeType(label, label, count, name, key, tuple(result), hidden)


def _relationship(
    name: str,
    count: int,
    sampled: int,
    rows: list[dict[str, Any]],
    seen: list[PropertySample],
    indexed: _Indexed,
    notes: _Notes,
    typing: Typing,
) -> RelationshipType:
    pairs: Counter[tuple[str, str]] = Counter()
    for row in rows:
        if OWN.isdisjoint(row["a"]):
            for pair in ((a, b) for a in row["a"] or [""] for b in row["b"] or [""]):
                pairs[pair] += row["count"]
    # Shares in the sample are assumed to hold for all; if the sample is everything, they are exact.
    ends = tuple((a, b, round(times * count / max(sampled, 1))) for (a, b), times in sorted(pairs.items()))
    result = []
    for sample in seen:
        prop = indexed.property(False, name, sample)
        prop, reason = read_as(prop, sample.texts, typing)
        if reason is not None:
            notes.reasons[f"relationship.{name}.property.{sample.key}"] = reason
        result.append(prop)
    return RelationshipType(name, name, count, ends, tuple(result))


def _samples(connection: Connection, patterns: list[str], most: int) -> Iterator[list[str]]:
    """Yield the server's ids of the first `x` of each pattern; several are asked together, which is planned faster."""
    for start in range(0, len(patterns), _AT_ONCE):
        batch = patterns[start : start + _AT_ONCE]
        columns = ", ".join(
            f"COLLECT {{ {pattern} RETURN elementId(x) LIMIT $most }} AS l{number}" for number, pattern in enumerate(batch)
        )
        (row,) = connection.ask(f"RETURN {columns}", {"most": most})
        yield from (row[f"l{number}"] for number in range(len(batch)))


def _seen(connection: Connection, match: str, ids: list[str], sampled: int) -> list[PropertySample]:
    """Return what a sample tells of each property, by key."""
    by_key: dict[str, list[dict[str, Any]]] = {}
    for row in connection.ask(f"{match} {_SAMPLE}", {"ids": ids}):
        by_key.setdefault(row["key"], []).append(row)
    result = []
    for key, rows in sorted(by_key.items()):
        types: Counter[str] = Counter()
        for row in rows:
            name = row["type"].removesuffix(" NOT NULL")
            if name == properties.INTEGERS and isinstance(row["listed"], (bytes, bytearray)):
                name = properties.BYTES
            types[name] += row["count"]
        texts = tuple(text for row in rows for text in row["texts"])
        integers = tuple(text for row in rows for text in row["whole"])
        distinct, longest = sum(row["distinct"] for row in rows), max(row["longest"] for row in rows)
        result.append(
            PropertySample(
                *(
                    key,
                    sampled,
                    tuple(sorted(types.items(), key=lambda item: (-item[1], item[0]))),
                    texts,
                    integers,
                    distinct,
                    longest,
                ),
                spaced=any(row["spaced"] for row in rows),
            )
        )
    return result


def is_vector(sample: PropertySample) -> bool:
    """Tell whether a property has long lists of numbers."""
    numbers = all(properties.is_list(name) and set(properties.elements(name)) <= {"FLOAT", "INTEGER"} for name, _ in sample.types)
    return numbers and sample.longest >= VECTOR
