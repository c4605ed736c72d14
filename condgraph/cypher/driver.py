"""Opening a driver from what names a server: an address, with what the environment says, or a
`py2neo.Graph`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from condgraph.engine.addresses import NEO4J_SCHEMES, parse, shown
from condgraph.engine.errors import OptionError

if TYPE_CHECKING:
    import neo4j


def opened(place: Any, user: str | None, password: str | None, patience: float) -> tuple[neo4j.Driver, str, str | None]:
    """A driver for a place, its address without passwords, and the database that the address names.

    `patience` is in seconds, for making a connection. Raises `OptionError` for what names no server.
    """
    import neo4j

    if not isinstance(place, str):
        place, user, password = _profile(place)
    elif place.partition("://")[2].partition("/")[0] == "":
        place = os.environ.get("NEO4J_URI") or os.environ.get("NEO4J_URL") or place
    address = parse(place, NEO4J_SCHEMES, example="neo4j://localhost:7687")
    if not address.host:
        raise OptionError(f"{shown(place)!r} names no server", hint="such as neo4j://localhost:7687, or NEO4J_URI")
    user = user or address.user or os.environ.get("NEO4J_USERNAME") or os.environ.get("NEO4J_USER")
    password = password or address.password or os.environ.get("NEO4J_PASSWORD")
    if password and not user:
        user = "neo4j"
    plain = address._replace(path="").plain
    try:
        driver = neo4j.GraphDatabase.driver(
            plain,
            auth=(user, password) if user and password is not None else None,
            # A connection that was idle is asked whether it is alive, so that a restarted server costs
            # nobody a query.
            liveness_check_timeout=5.0,
            notifications_min_severity="OFF",
            connection_timeout=patience,
            connection_acquisition_timeout=patience,
        )
    except (ValueError, neo4j.exceptions.ConfigurationError) as error:
        raise OptionError(f"{plain!r} is no address: {error}") from None
    return driver, plain, address.path.strip("/") or None


def _profile(place: Any) -> tuple[str, str | None, str | None]:
    """Address, user and password of a `py2neo.Graph`."""
    profile = getattr(getattr(place, "service", None), "profile", None)
    if profile is None:
        raise OptionError(f"what was given ({type(place).__name__}) is no address, no neo4j.Driver and no py2neo.Graph")
    user, password = tuple(profile.auth) if getattr(profile, "auth", None) else (None, None)
    return str(profile.uri), user or None, password or None
