"""How keys are written, and what columns with keys are called: names of tables and columns without
their punctuation, in the singular; a key of several columns as one text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

#: What a column is called that says what kind of relation a row is, as plain names.
TYPE_NAMES: Final = frozenset(
    ("type", "kind", "relation", "relationship", "relationtype", "relationshiptype", "reltype", "predicate", "linktype", "edgetype")
)

_IRREGULAR: Final = {"people": "person", "children": "child", "women": "woman", "indices": "index", "matrices": "matrix"}
_POINTED: Final = re.compile(r"(0|-?[1-9][0-9]*)\.0+").fullmatch
_ENDINGS: Final = ("", "id", "key", "code", "no", "number", "uuid", "guid")


def joined(parts: Sequence[str | None]) -> str | None:
    """The key of a row as one text, None where a part is missing.

    >>> joined(["10", "2"]), joined(["a+b", "c"]), joined(["10", None])
    ('10+2', 'a\\\\+b+c', None)
    """
    if len(parts) == 1:
        return parts[0]
    if None in parts:
        return None
    return "+".join(str(part).replace("\\", "\\\\").replace("+", "\\+") for part in parts)


def whole(text: str) -> str:
    """A whole number without the point that programs write behind it, as in columns where some are
    missing.

    >>> [whole(text) for text in ("12.0", "-3.00", "1.5", "A.0", "012.0")]
    ['12', '-3', '1.5', 'A.0', '012.0']
    """
    found = _POINTED(text)
    return text if found is None else found[1]


def plain(name: str) -> str:
    """A name with letters and digits alone, in lower case: what `productID` and `product_id` share."""
    return re.sub(r"[\W_]+", "", name.casefold())


def singular(name: str) -> str:
    """The English singular of a plain name.

    >>> [singular(name) for name in ("products", "categories", "boxes", "addresses", "status", "people")]
    ['product', 'category', 'box', 'address', 'status', 'person']
    """
    for plural, one in _IRREGULAR.items():
        if name.endswith(plural):
            return name[: -len(plural)] + one
    if name.endswith("ies") and len(name) > 4:
        return name[:-3] + "y"
    if re.search(r"(?:ss|x|ch|sh|z)es$", name):
        return name[:-2]
    if name.endswith("s") and not name.endswith(("ss", "us", "is")):
        return name[:-1]
    return name


def key_names(table: str) -> frozenset[str]:
    """What a key of a table may be called, as plain names, apart from `id`."""
    stems = {plain(table), singular(plain(table))}
    return frozenset(stem + ending for stem in stems for ending in _ENDINGS) | {"id" + stem for stem in stems}


def is_number(text: str) -> bool:
    """Whether a text is a number; digits after zeros are a code.

    >>> [is_number(text) for text in ("12", "-1.5", "0", "007", "S09")]
    [True, True, True, False, False]
    """
    return not (len(text) > 1 and text[0] == "0" and text[1] != ".") and text.replace(".", "", 1).replace("-", "", 1).isdigit()
