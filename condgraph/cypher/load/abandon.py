"""Taking back a load that was not finished: the graph holds again what it held before, or is gone
where it held nothing.

What the load added has its stamp, and what it changed was noted before (`write`); the graph's node
still says what its content was, so that what is left is compared with that before readers see it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from condgraph.cypher.layout.schema import CONCEPT, DELETED, ENTITY, FORMER, PREDICATE, ROW, SOURCE, VALUE
from condgraph.cypher.load.delete import BATCH, delete, remove
from condgraph.cypher.load.lock import Loading
from condgraph.cypher.load.pull import pull
from condgraph.cypher.load.texts import ENTITY_PROPERTIES, RENAMED
from condgraph.cypher.load.write import content_id, earlier_content_id
from condgraph.engine.errors import StoreDamagedError
from condgraph.engine.facts import EntityKind

if TYPE_CHECKING:
    from condgraph.cypher.connection import Connection

_NOTED: Final = (
    f"MATCH (u:{FORMER}) WHERE u.graph = $graph AND u.load = $stamp AND u.at IS NOT NULL AND u.of = $of WITH u LIMIT {BATCH} "
)
_FOUND: Final = f"MATCH (a:{ENTITY} {{graph: $graph, handle: u.subject}}) "
_AGAIN: Final = "SET x.sources = u.sources, x.rows = u.rows DELETE u"


def _set(*names: str) -> str:
    return f"SET {', '.join(f'x.{name} = u.{name}' for name in names)} "


#: How what was noted is put back, by what it is of.
_RESTORE: Final = {
    "source": f"MATCH (x:{SOURCE} {{graph: $graph, name: u.name}}) {_set('number', 'location', 'format', 'content')} DELETE u",
    "predicate": f"MATCH (x:{PREDICATE} {{graph: $graph, key: u.key}}) {_set('relations', 'attributes', 'qualifiers')} DELETE u",
    "entity": f"MATCH (x:{ENTITY} {{graph: $graph, handle: u.handle}}) {_set(*ENTITY_PROPERTIES[1:-1])} "
    + "".join(
        f"FOREACH (_ IN CASE WHEN u.kind = {int(kind)} THEN [] ELSE [1] END | REMOVE x:{label}) "
        for kind, label in ((EntityKind.CONCEPT, CONCEPT), (EntityKind.ROW, ROW))
    )
    + "".join(
        f"FOREACH (_ IN CASE WHEN u.kind = {int(kind)} THEN [1] ELSE [] END | SET x:{label}) "
        for kind, label in ((EntityKind.CONCEPT, CONCEPT), (EntityKind.ROW, ROW))
    )
    + f"DELETE u {RENAMED.format(entity='x')}",
    "labels": f"MATCH (x:{ENTITY} {{graph: $graph, handle: u.handle}}) "
    "REMOVE x:$([l IN labels(x) WHERE l IN $labels]) SET x:$(u.labels) DELETE u",
    "relation": _FOUND + f"MATCH (a)-[x:$(u.type)]->(:{ENTITY}) WHERE x.sid = u.sid {_AGAIN}",
    "attribute": _FOUND + f"MATCH (a)-[f:$(u.type)]->(x:{VALUE}) WHERE f.sid = u.sid "
    f"SET x.raw = u.raw, x.raws = u.raws, x.name = u.name {_AGAIN}",
    "member": _FOUND
    + f"MATCH (b:{ENTITY} {{graph: $graph, handle: u.object}}) MATCH (a)-[x:$(u.type)]->(b) WHERE x.sid IS NULL {_AGAIN}",
}


def abandon(connection: Connection, graph: str, about: dict[str, Any]) -> None:
    """Take back the load of a graph whose node says `about`; raises `StoreBusyError` while its
    writer is there.
    """
    if about["loading"] == DELETED:
        delete(connection, graph)
        return
    with Loading(connection, graph) as loading:
        loading.begin(about["loading"], about.get("what") or (), seen=about)
        if about.get("removing"):
            # All that it adds is there, and some of what it takes away may be gone: it is ended.
            loading.end_removing()
            return
        if loading.stamp is None:
            delete(connection, graph)
            loading.load = ""
            return
        stamp = loading.stamp
        remove(connection, graph, stamp)
        for label, key in ((PREDICATE, "key"), (SOURCE, "name")):
            text = f"MATCH (n:{label}) WHERE n.graph = $graph AND n.{key} IS NOT NULL AND n.load = $stamp DETACH DELETE n"
            connection.write(text, {"graph": graph, "stamp": stamp})
        given = {"graph": graph, "stamp": stamp, "labels": about.get("labelling", [])}
        for of, text in _RESTORE.items():
            while connection.write(_NOTED + text, {**given, "of": of}).deleted:
                pass
        found = pull(connection, graph)
        if about["content"] not in (content_id(found), earlier_content_id(found)):
            raise StoreDamagedError(
                f"graph {graph!r} is not what it was before the load, although that was taken back",
                hint="delete the graph, and load it again",
            )
        loading.take_back()
