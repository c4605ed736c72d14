"""The mapping file in TOML, which corrects the guessed mapping of an existing database.

Every key is optional; what a file does not state stays as guessed.

    [node.Person]
    concept = "person"                     what programs call it
    name = ["name", "surname"]             the properties that together name it; [] for none
    id = "nhs_no"                          a property that no two of its nodes share
    hide = ["photo"]                       properties that become no attributes
    [node.Crime.property.date]
    predicate = "date of crime"
    as = "date"                            itself, number, date, datetime, text
    format = "%d/%m/%Y"
    [relationship.EMPLOYED]
    predicate = "employed by"
    qualifiers = { roles = "role" }        what programs call its properties
    times = "[from, to)"                   from when until when it holds; "]" if the end is included
    [relationship.EMPLOYED.property.from]  as for a node

A name that the database does not have, or a reading that fits nothing in the sample, is an error that suggests the nearest one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Mapping as Map
from dataclasses import replace
from typing import Any, Final, TypeVar, cast, get_args

from condgraph.cypher.native.introspect import Texts, check_reading
from condgraph.cypher.native.mapping import Mapping, NodeType, Property, Reading, RelationshipType
from condgraph.cypher.native.values import ISO_DATE, ISO_DATETIME, elements
from condgraph.engine.errors import OptionError, nearest
from condgraph.engine.facts import END_TIME, START_TIME
from condgraph.engine.row_times import RowTimes

T = TypeVar("T")
_READINGS: Final = get_args(Reading)
_TIMED: Final = frozenset(("DATE", "LOCAL DATETIME", "ZONED DATETIME"))


def applied(content: Map[str, Any], guess: Mapping, texts: Texts, shared: Callable[[str, str], bool]) -> Mapping:
    """Return a guessed mapping, changed as a file states.

    `shared` tells whether two nodes of a label have the same value of a property.
    """
    _keys("the mapping file", content, ("node", "relationship"))
    nodes = {node.label: node for node in guess.nodes}
    for label, section in _table(content, "node", "the mapping file").items():
        about = f"node.{_word(label)}"
        node = _lookup(nodes, label, f"the database has no nodes with the label {label!r}")
        nodes[label] = _node(node, _table({about: section}, about, "the mapping file"), about, texts, shared)
    relationship_types = {relationship.type: relationship for relationship in guess.relationships}
    for name, section in _table(content, "relationship", "the mapping file").items():
        about = f"relationship.{_word(name)}"
        relationship_type = _lookup(relationship_types, name, f"the database has no relationships of the type {name!r}")
        relationship_types[name] = _relationship(
            relationship_type, _table({about: section}, about, "the mapping file"), about, texts
        )
    reasons_given = {f"{about}": "the mapping file says so" for about in _paths(content)}
    return replace(
        guess, nodes=tuple(nodes.values()), relationships=tuple(relationship_types.values()), reasons=guess.reasons | reasons_given
    )


def _node(node: NodeType, section: Map[str, Any], about: str, texts: Texts, shared: Callable[[str, str], bool]) -> NodeType:
    _keys(about, section, ("concept", "name", "id", "hide", "property"))
    keys = {prop.key: prop for prop in node.properties}
    owner = f"the nodes of {node.label!r}"
    if "concept" in section:
        node = replace(node, concept=_text(section, "concept", about))
    if "name" in section:
        node = replace(
            node, name=tuple(_lookup(keys, key, f"{owner} have no property {key!r}").key for key in _texts(section, "name", about))
        )
    if "id" in section:
        key = _lookup(keys, _text(section, "id", about), f"{owner} have no property {section['id']!r}").key
        if key != node.unique and shared(node.label, key):
            raise OptionError(
                f"{about}.id: two nodes of {node.label!r} have the same {key!r}", hint="an id tells every node from all others"
            )
        node = replace(node, unique=key)
    if "hide" in section:
        node = replace(
            node,
            hidden=tuple(_lookup(keys, key, f"{owner} have no property {key!r}").key for key in _texts(section, "hide", about)),
        )
    for key, subsection in _table(section, "property", about).items():
        path = f"{about}.property.{_word(key)}"
        prop = _lookup(keys, key, f"{owner} have no property {key!r}")
        keys[key] = _property(prop, _table({path: subsection}, path, about), path, texts.get(("node", node.label, key), ()))
    return replace(node, properties=tuple(keys.values()))


def _relationship(relationship: RelationshipType, section: Map[str, Any], about: str, texts: Texts) -> RelationshipType:
    _keys(about, section, ("predicate", "qualifiers", "times", "property"))
    keys = {prop.key: prop for prop in relationship.qualifiers}
    owner = f"the relationships {relationship.type!r}"
    for key, subsection in _table(section, "property", about).items():
        path = f"{about}.property.{_word(key)}"
        prop = _lookup(keys, key, f"{owner} have no property {key!r}")
        keys[key] = _property(
            prop, _table({path: subsection}, path, about), path, texts.get(("relationship", relationship.type, key), ())
        )
    for key, qualifier_name in _table(section, "qualifiers", about).items():
        if not isinstance(qualifier_name, str) or not qualifier_name.strip():
            raise OptionError(f"{about}.qualifiers.{_word(key)} is a text, not {qualifier_name!r}")
        keys[key] = replace(_lookup(keys, key, f"{owner} have no property {key!r}"), predicate=qualifier_name)
    start, end = relationship.start, relationship.end
    if "times" in section:
        times = RowTimes.of(_text(section, "times", about))
        if times.point:
            raise OptionError(f"{about}.times is an interval, not {times.point!r}", hint='times = "[from, to)", or "[from, ]"')
        for key in times.columns():
            prop = _lookup(keys, key, f"{owner} have no property {key!r}")
            types = {kind for name, _ in prop.types for kind in elements(name)}
            if prop.reading not in ("date", "datetime") and not types & _TIMED:
                hint = f'[{about}.property.{_word(prop.key)}] with as = "date", and a format, makes it one'
                raise OptionError(f"{about}.times: {prop.key!r} is not a time but {', '.join(sorted(types))}", hint=hint)
        start, end = times.start or None, times.end or None
        if end is not None:
            keys[end] = replace(keys[end], excluded=times.excluded)
    if "predicate" in section:
        relationship = replace(relationship, predicate=_text(section, "predicate", about))
    if start is not None and start == end:
        raise OptionError(f"{about}: {start!r} is both from when and until when it holds")
    clashes = [
        prop.predicate for prop in keys.values() if prop.key not in (start, end) and prop.predicate in (START_TIME, END_TIME)
    ]
    if clashes and (start or end):
        raise OptionError(f"{about}: a qualifier is called {clashes[0]!r} as well", hint="qualifiers = {...} gives it another name")
    return replace(relationship, qualifiers=tuple(keys.values()), start=start, end=end)


def _property(prop: Property, section: Map[str, Any], about: str, texts: Sequence[str]) -> Property:
    _keys(about, section, ("predicate", "as", "format"))
    if "predicate" in section:
        prop = replace(prop, predicate=_text(section, "predicate", about))
    if "as" not in section and "format" not in section:
        return prop
    reading = _text(section, "as", about) if "as" in section else prop.reading
    if reading not in _READINGS:
        raise OptionError(f"{about}.as is one of {', '.join(_READINGS)}, not {reading!r}", candidates=nearest(reading, _READINGS))
    form = _text(section, "format", about) if "format" in section else None
    if form is not None and reading not in ("date", "datetime"):
        raise OptionError(f'{about}.format needs as = "date" or "datetime"')
    if form == {"date": ISO_DATE, "datetime": ISO_DATETIME}.get(reading):
        form = None
    changed = replace(prop, reading=cast(Reading, reading), format=form)
    try:
        check_reading(changed, texts)
    except OptionError as error:
        raise OptionError(f"{about}: {error.message}", hint=error.hint) from None
    return changed


def _keys(about: str, section: Map[str, Any], allowed: Sequence[str]) -> None:
    for key in section:
        if key not in allowed:
            hint = f"it has {', '.join(allowed)}"
            raise OptionError(f"{about} has no key {key!r}", candidates=nearest(key, allowed), hint=hint)


def _lookup(options: Map[str, T], name: str, message: str) -> T:
    if name in options:
        return options[name]
    hint = f"there are {', '.join(map(repr, sorted(options)[:20]))}" if options else "there are none"
    raise OptionError(f"the mapping file: {message}", candidates=nearest(name, options), hint=hint)


def _table(section: Map[str, Any], key: str, about: str) -> Map[str, Any]:
    result = section.get(key, {})
    if not isinstance(result, dict):
        raise OptionError(f"{about}: {key} is a table, not {result!r}", hint=f"[{key}...] begins one")
    return result


def _text(section: Map[str, Any], key: str, about: str) -> str:
    result = section[key]
    if not isinstance(result, str) or not result.strip():
        raise OptionError(f"{about}.{key} is a text, not {result!r}")
    return result


def _texts(section: Map[str, Any], key: str, about: str) -> list[str]:
    result = [section[key]] if isinstance(section[key], str) else section[key]
    if not isinstance(result, list) or not all(isinstance(item, str) for item in result) or len(set(result)) < len(result):
        raise OptionError(f"{about}.{key} is a list of different texts, not {section[key]!r}")
    return result


def _paths(content: Map[str, Any]) -> Iterable[str]:
    for kind, tables in content.items():
        for name, section in tables.items():
            for key in section:
                if key == "property":
                    yield from (f"{kind}.{name}.property.{item}" for item in section[key])
                else:
                    yield f"{kind}.{name}.{key}"


# -- writing ---------------------------------------------------------------------------------------


def written(mapping: Mapping, place: str) -> str:
    """Return a mapping as the text of an equivalent file, each choice with its reason."""
    lines = [
        f"# What {_line(place)} is taken for: {mapping.node_count:,} nodes, {mapping.relationship_count:,} relationships.",
        "# Every key may be left out: what a file does not say is guessed again when the database is opened.",
        *(f"# Warning: {_line(warning)}" for warning in mapping.warnings),
    ]
    for node in mapping.nodes:
        about = f"node.{node.label}"
        lines += ["", f"[node.{_word(node.label)}]", f"# {node.count:,} nodes" + ("" if node.label else " without a label")]
        if node.label:
            lines.append(f"concept = {_quoted(node.concept)}")
        lines += _reason(mapping, f"{about}.name")
        lines.append(f"name = {_listed(node.name)}")
        lines += _reason(mapping, f"{about}.id")
        if node.unique is not None:
            lines.append(f"id = {_quoted(node.unique)}")
        if node.hidden:
            lines += [*_reason(mapping, f"{about}.hide"), f"hide = {_listed(node.hidden)}"]
        lines += _properties(mapping, node.properties, about, f"node.{_word(node.label)}")
    for relationship in mapping.relationships:
        ends = ", ".join(f"{a or 'no label'} to {b or 'no label'}" for a, b, _ in relationship.ends)
        lines += ["", f"[relationship.{_word(relationship.type)}]", f"# {relationship.count:,} relationships: {_line(ends)}"]
        lines.append(f"predicate = {_quoted(relationship.predicate)}")
        if relationship.qualifiers:
            pairs = ", ".join(f"{_word(prop.key)} = {_quoted(prop.predicate)}" for prop in relationship.qualifiers)
            lines.append(f"qualifiers = {{ {pairs} }}")
        if relationship.start is not None or relationship.end is not None:
            excluded = any(prop.excluded for prop in relationship.qualifiers if prop.key == relationship.end)
            times = RowTimes(relationship.start or "", relationship.end or "", excluded=excluded)
            lines.append(f"times = {_quoted(str(times))}")
        # Their names are already in `qualifiers`.
        plain = [replace(prop, predicate=prop.key) for prop in relationship.qualifiers]
        lines += _properties(mapping, plain, f"relationship.{relationship.type}", f"relationship.{_word(relationship.type)}")
    return "\n".join(lines) + "\n"


def _properties(mapping: Mapping, properties: Sequence[Property], about: str, header: str) -> list[str]:
    """Return a table for each property with a changed name or reading, after comments about the others."""
    comments, tables = [], []
    for prop in properties:
        types = ", ".join(f"{name} {count:,}" for name, count in prop.types)
        summary = f"{types} of {prop.sampled:,} sampled" + ("; indexed" if prop.indexed else "")
        if prop.reading == "itself" and prop.predicate == prop.key:
            comments.append(f"# {_line(_word(prop.key))}: {summary}")
            continue
        tables += ["", f"[{header}.property.{_word(prop.key)}]", f"# {summary}", *_reason(mapping, f"{about}.property.{prop.key}")]
        if prop.predicate != prop.key:
            tables.append(f"predicate = {_quoted(prop.predicate)}")
        if prop.reading != "itself":
            tables.append(f"as = {_quoted(prop.reading)}")
        if prop.format is not None:
            tables.append(f"format = {_quoted(prop.format)}")
    return [*comments, *tables]


def _reason(mapping: Mapping, about: str) -> list[str]:
    reason = mapping.reasons.get(about)
    return [] if reason is None else [f"# {_line(reason)}"]


def _line(text: str) -> str:
    """Return a text as part of a comment."""
    return "".join(c if c.isprintable() else " " for c in text)


def _word(name: str) -> str:
    """Return a name as a TOML key."""
    return name if name and name.isascii() and name.replace("_", "a").replace("-", "a").isalnum() else _quoted(name)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _listed(names: Iterable[str]) -> str:
    return f"[{', '.join(map(_quoted, names))}]"
