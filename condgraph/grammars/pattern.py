"""The grammar of patterns, as JSON triples: `{"triples": [["UNKNOWN 1", "capital", "Kathmandu"]]}`, with the requested unknown
as `answer`.
"""

from __future__ import annotations

import json
from typing import Any, Final

from condgraph.engine.errors import OptionError
from condgraph.engine.values import collapse
from condgraph.grammars.kopl import quoted
from condgraph.grammars.parts import Chars, Part, Ref, Repeat, Rules, Seq, Text, alt, maybe, object_schema, seq, trie
from condgraph.grammars.vocabulary import Vocabulary
from condgraph.languages.pattern.pattern import Pattern, condition_of

#: Most triples of a pattern.
MAX_TRIPLES: Final = 6
#: The predicate of memberships, which patterns follow.
INSTANCE_OF: Final = "instance of"


def writable(name: str) -> bool:
    """Tell whether a pattern reads a name as one: "> 5" is a value, and "UNKNOWN 1" an unknown."""
    text = collapse(name)
    return bool(text) and Pattern.is_name(text)


def _relations(names: Vocabulary) -> list[str]:
    """Return the possible predicates of an edge: relations, memberships, and attributes whose values are texts."""
    texts = [name for name, kinds in names.keys.items() if "text" in kinds]
    # A relation that looks like a value is still read as a relation.
    relations = (name for name in (*names.relations, *texts) if writable(name) or condition_of(collapse(name)))
    result = dict.fromkeys([*relations, *([INSTANCE_OF] if names.concepts else [])])
    if not result:
        raise OptionError("the graph has no names that a pattern could hold", hint="load something first")
    return list(result)


def rules(names: Vocabulary) -> Rules:
    """Return the rules of patterns over some names."""
    letter = Chars((("a", "z"),))
    unknown = seq('"UNKNOWN ', maybe(seq(letter, Repeat(letter, 0, 15), " ")), Chars((("1", "9"),)), '"')
    known, kinds = known_of(names), _concept_names(names)
    node = alt(Ref("unknown"), Ref("known")) if known is not None else Ref("unknown")
    further_triples = Repeat(Seq((Text(", "), Ref("triple"))), 0, MAX_TRIPLES - 1)
    triple = seq("[", Ref("node"), ", ", Ref("relation"), ", ", Ref("node"), "]")
    return {
        "root": seq('{"triples": [', Ref("triple"), further_triples, "]", maybe(seq(', "answer": ', Ref("unknown"))), "}"),
        "unknown": unknown,
        "triple": triple,
        "node": node,
        **({"known": known} if known is not None else {}),
        **({"kind": trie(map(quoted, kinds))} if kinds else {}),
        "relation": alt('"UNKNOWN relation"', trie(map(quoted, _relations(names)))),
    }


def known_of(names: Vocabulary) -> Part | None:
    """Return the entities and concepts that a node can be; None if there are none.

    Concepts, which are the same for all questions, have a rule of their own.
    """
    kinds = _concept_names(names)
    entities = sorted(filter(writable, {*names.entities} - set(kinds)))
    parts: list[Part] = [Ref("kind")] if kinds else []
    parts += [trie(map(quoted, entities))] if entities else []
    return alt(*parts) if parts else None


def _concept_names(names: Vocabulary) -> list[str]:
    return sorted(filter(writable, names.concepts))


def _known_names(names: Vocabulary) -> list[str]:
    return sorted(filter(writable, {*names.entities, *names.concepts}))


def is_empty(text: str) -> bool:
    """Tell whether a text is a pattern without triples, which states that nothing answers."""
    try:
        result = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(result, dict) and result.get("triples") == []


def schema(names: Vocabulary, *, none: bool = False) -> dict[str, Any]:
    """Return the JSON schema of patterns over some names, with triples as objects; `none` allows no triples."""
    known = _known_names(names)
    unknown = {"type": "string", "pattern": "^UNKNOWN (?:[a-z]{1,16} )?[1-9]$"}
    node = {"$ref": "#/$defs/node"}
    triple = object_schema({"head": node, "relation": {"$ref": "#/$defs/relation"}, "tail": node})
    triples = {"type": "array", "items": triple, "minItems": 0 if none else 1, "maxItems": MAX_TRIPLES}
    return {
        **object_schema({"triples": triples, "answer": {"anyOf": [unknown, {"type": "null"}]}}),
        "$defs": {
            "node": {"anyOf": [unknown, *([{"enum": known}] if known else [])]},
            "relation": {"enum": ["UNKNOWN relation", *_relations(names)]},
        },
    }
