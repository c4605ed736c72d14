"""Answers the procedures and commands that Neo4j's tools send when they connect."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import condgraph
from condgraph.bolt.packstream import Structure
from condgraph.bolt.remote import PATTERNS
from condgraph.bolt.terms import NODE, RELATIONSHIP
from condgraph.languages.cypher.procedures import NAMES, ProcedureRows

if TYPE_CHECKING:
    from condgraph.graph import Graph

#: The server's name for itself: drivers and tools read a version of Neo4j from it, and choose what they
#: send.
AGENT: Final = f"Neo4j/5.4.0-condgraph-{condgraph.__version__}"
_VERSION: Final = "5.4.0"
#: A second name of the database, a common default in client settings.
ALIAS: Final = "neo4j"
_SPACE: Final = r"(?:\s++|//[^\n]*+(?:\n|\Z)|/\*(?:[^*]|\*(?!/))*+\*/)"
_SHOW: Final = re.compile(
    rf"({_SPACE}*+)SHOW{_SPACE}++((?:DEFAULT|HOME){_SPACE}++DATABASE|DATABASES|(?:ALL{_SPACE}++|BUILT{_SPACE}++IN{_SPACE}++)?FUNCTIONS?"
    rf"|PROCEDURES?(?:{_SPACE}++EXECUTABLE)?|(?:ALL{_SPACE}++)?INDEX(?:ES)?|(?:ALL{_SPACE}++)?CONSTRAINTS?|CURRENT{_SPACE}++USER"
    rf"|TRANSACTIONS?|DATABASE(?:{_SPACE}++(?P<name>\w++|`[^`]*+`))?)\b",
    re.IGNORECASE,
)
_YIELD: Final = re.compile(rf"{_SPACE}*+YIELD\b", re.IGNORECASE)
_VISUALIZATION: Final = re.compile(
    rf"{_SPACE}*+CALL{_SPACE}++db\.schema\.visualization{_SPACE}*+(?:\({_SPACE}*+\))?{_SPACE}*+(?:YIELD{_SPACE}++(?:\*|nodes{_SPACE}*+,{_SPACE}*+relationships)"
    rf"{_SPACE}*+)?(?:RETURN{_SPACE}++(?:\*|nodes{_SPACE}*+,{_SPACE}*+relationships){_SPACE}*+)?;?{_SPACE}*+\Z",
    re.IGNORECASE,
)  # fmt: skip
#: Columns of the results of SHOW.
_DATABASE: Final = (
    "name type aliases access address role writer requestedStatus currentStatus statusMessage default home constituents"
)
_INDEX: Final = "id name state populationPercent type entityType labelsOrTypes properties indexProvider owningConstraint"
_PROCEDURE: Final = (
    "name description mode worksOnSystem signature argumentDescription returnDescription admin rolesExecution "
    "rolesBoostedExecution isDeprecated deprecatedBy option"
)
_FUNCTION: Final = (
    "name category description signature isBuiltIn argumentDescription returnDescription aggregating rolesExecution "
    "rolesBoostedExecution isDeprecated deprecatedBy"
)
#: Columns shown if no YIELD names others.
_USUAL: Final = {"procedures": "name, description, mode, worksOnSystem", "functions": "name, category, description"}
_TRANSACTION: Final = (
    "database transactionId currentQueryId connectionId clientAddress username currentQuery startTime status elapsedTime"
)


def shown(text: str) -> str:
    """Turn a text that begins with `SHOW` into a call of a procedure with that name; return other texts unchanged."""
    match = _SHOW.match(text)
    if match is None:
        return text
    words = [word.upper() for word in re.findall(r"[A-Za-z]++", re.sub(r"//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/", " ", match[2]))]
    keyword = next(
        word for word in words if word.startswith(("DATABASE", "FUNCTION", "PROCEDURE", "INDEX", "CONSTRAINT", "USER", "TRANS"))
    )
    kind = {"DATABASE": "databases", "FUNCTION": "functions", "PROCEDUR": "procedures", "INDEX": "indexes"}.get(
        keyword.rstrip("S")[:8]
    )
    kind = kind or {"CONSTRAI": "constraints", "USER": "user", "TRANSACT": "transactions"}.get(keyword[:8]) or "indexes"
    remainder = text[match.end() :]
    name = match["name"]
    argument = "" if name is None else f"'{name.strip('`')}'"
    if re.match(rf"{_SPACE}*+WHERE\b", remainder, re.IGNORECASE) or (kind in _USUAL and not _YIELD.match(remainder)):
        remainder = f" YIELD {_USUAL.get(kind, '*')}{remainder}"
    return f"{match[1]}CALL `show {kind}`({argument}){remainder}"


def procedures(graph: Graph, client: Mapping[str, Any]) -> dict[str, ProcedureRows]:
    """Return the procedures of a server.

    `client` has the `user`, the `address` of the server and the `id` of the connection.
    """
    user, address, name = client["user"], client["address"], graph.name

    def constant(columns: str, *rows: Sequence[Any], arguments: int = 0) -> ProcedureRows:
        return ProcedureRows(tuple(columns.split()), lambda *_: rows, arguments)

    def databases(wanted: str | None = None) -> list[list[Any]]:
        aliases = [] if name == ALIAS else [ALIAS]
        row = [name, "standard", aliases, "read-only", address, "primary", True, "online", "online", "", True, True, []]
        return [row] if wanted is None or wanted.lower() in (name.lower(), ALIAS) else []

    roles = [[role, [address]] for role in ("READ", "ROUTE")]
    settings = [["browser.retain_connection_credentials", "", "true"], ["browser.allow_outgoing_connections", "", "false"]]
    shown_as = user or ALIAS
    by_name: dict[str, ProcedureRows] = {
        "dbms.components": constant("name versions edition", ["Neo4j Kernel", [_VERSION], "community"]),
        "dbms.clientConfig": constant("name description value", *settings),
        "dbms.showCurrentUser": constant("username roles flags", [shown_as, ["reader"], []]),
        "dbms.info": constant("id name creationDate", [name, name, ""]),
        "db.info": constant("id name creationDate", [name, name, ""]),
        "db.ping": constant("success", [True]),
        "dbms.routing.getRoutingTable": constant("ttl servers", [300, roles], arguments=2),
        "show databases": ProcedureRows(tuple(_DATABASE.split()), databases, 1),
        "show user": constant("user roles passwordChangeRequired suspended home", [shown_as, ["reader"], False, False, name]),
        "show indexes": constant(_INDEX),
        "show constraints": constant("id name type entityType labelsOrTypes properties ownedIndex propertyType"),
        "show transactions": constant(_TRANSACTION),
        "show functions": ProcedureRows(tuple(_FUNCTION.split()), _functions),
        "db.schema.nodeTypeProperties": ProcedureRows(
            ("nodeType", "nodeLabels", "propertyName", "propertyTypes", "mandatory"), lambda: _node_properties(graph)
        ),
        "db.schema.relTypeProperties": ProcedureRows(
            ("relType", "propertyName", "propertyTypes", "mandatory"), lambda: _relationship_properties(graph)
        ),
    }

    def listed() -> list[list[Any]]:
        names = {*(procedure for procedure in by_name if procedure.startswith("db")), *NAMES, "db.schema.visualization"}
        return [
            [procedure, "", "READ", False, "", [], [], False, None, None, False, None, {"deprecated": False}]
            for procedure in sorted(names)
        ]

    by_name["show procedures"] = ProcedureRows(tuple(_PROCEDURE.split()), listed)
    return by_name


def _functions() -> list[list[Any]]:
    from condgraph.engine.algebra.expressions import FUNCTIONS
    from condgraph.languages.cypher.tree import AGGREGATES

    return [
        [name, "", "", "", True, [], "", name in AGGREGATES, None, None, False, None] for name in sorted({*FUNCTIONS, *AGGREGATES})
    ]


#: Neo4j's names for the types of values.
_TYPES: Final = {"text": "String", "quantity": "Double", "time": "Date", "entity": "Node"}


def _node_properties(graph: Graph) -> list[list[Any]]:
    rows = []
    for predicate in graph.schema().predicates:
        types = sorted({_TYPES[value.type] for value in predicate.values if value.type in _TYPES})
        labels = _labels_of(predicate.subjects)
        if predicate.attributes:
            rows += [[f":`{label}`", [label], predicate.name, types, False] for label in labels]
    return sorted(rows)


def _relationship_properties(graph: Graph) -> list[list[Any]]:
    rows: list[list[Any]] = []
    for predicate in graph.schema().predicates:
        if not predicate.relations:
            continue
        name = f":`{predicate.name}`"
        for key in predicate.qualifiers:
            rows.append([name, key.name, sorted({_TYPES[value.type] for value in key.values if value.type in _TYPES}), False])
        if not predicate.qualifiers:
            rows.append([name, None, None, False])
    return rows


def visualization(text: str, graph: Graph, element_ids: bool) -> tuple[list[Structure], list[Structure]] | None:
    """Return a node for each label and a relationship for each pattern of two labels, for `db.schema.visualization`.

    None if the text is no call of it.
    """
    if not _VISUALIZATION.match(text):
        return None
    label_patterns = _patterns(graph)
    labels = sorted({label for subject, _, target in label_patterns for label in (subject, target)})
    node_numbers = {label: -1 - index for index, label in enumerate(labels)}
    nodes = []
    for label, number in node_numbers.items():
        fields: tuple[Any, ...] = (number, [label], {"name": label, "indexes": [], "constraints": []})
        nodes.append(Structure(NODE, (*fields, str(number)) if element_ids else fields))
    relationships = []
    for index, (subject, predicate, target) in enumerate(sorted(label_patterns)):
        ends = node_numbers[subject], node_numbers[target]
        fields = (-1 - index, *ends, predicate, {"name": predicate})
        relationships.append(Structure(RELATIONSHIP, (*fields, str(-1 - index), *map(str, ends)) if element_ids else fields))
    return nodes, relationships


def _patterns(graph: Graph) -> Iterable[tuple[str, str, str]]:
    """Return subject label, predicate and object label of all relations.

    They are counted from the columns of a graph in a folder, and read with a query from a server. There, labels include
    those of broader concepts, which the schema distinguishes.
    """
    if "://" not in graph.place:
        from condgraph.overview.survey import patterns

        return patterns(graph.current)
    ends = {item.name: (_labels_of(item.subjects), _labels_of(item.objects)) for item in graph.schema().predicates}
    triples = graph.query(PATTERNS, language="cypher").values
    return [
        (subject, predicate, thing)
        for subject, predicate, thing in triples
        if subject in ends[predicate][0] and thing in ends[predicate][1]
    ]


def _labels_of(kinds: Iterable[Any]) -> set[str]:
    return {kind.name.rpartition("/")[2] for kind in kinds if kind.sort in ("concept", "table")}
