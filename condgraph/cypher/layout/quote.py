"""The one place where a name becomes part of Cypher text."""

from __future__ import annotations

from condgraph.engine.errors import OptionError


def quote(name: str) -> str:
    """A relationship type, label or property as a quoted identifier.

    Doubling backticks is not enough: Cypher reads unicode escapes before it looks for quotes, so
    that a backslash could write a backtick. It is written as its own escape first.

    >>> quote("directed by"), quote("a`b"), quote("zz\\\\u0060) RETURN 42 //")
    ('`directed by`', '`a``b`', '`zz\\\\u005Cu0060) RETURN 42 //`')
    """
    if not name:
        raise OptionError("an empty name is no identifier in Cypher")
    return "`" + name.replace("\\", "\\u005C").replace("`", "``") + "`"
