"""What a request of the API says: its method, its fields in the address or in a body of JSON, and
files as they come.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl

from condgraph.endpoint.exchange import Exchange
from condgraph.endpoint.protocol import ProtocolError
from condgraph.studio.spec import Field

#: Bytes of a body of JSON, and fields of an address.
MOST_JSON: Final = 2 << 20
_MOST_FIELDS: Final = 100


async def read_json(exchange: Exchange) -> dict[str, Any]:
    """The body as an object; raises status 400, 413 or 415."""
    kind = (exchange.header("content-type") or "").partition(";")[0].strip().lower()
    if kind != "application/json":
        # A page of others could send anything else without being asked for leave.
        raise ProtocolError(415, "send JSON, as application/json", {"Accept-Post": "application/json"})
    body = await exchange.body(MOST_JSON)
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(400, f"the body is not well-formed JSON: {str(error)[:200]}") from None
    if not isinstance(found, dict):
        raise ProtocolError(400, "the body is an object of JSON")
    return found


def from_address(address: bytes, fields: tuple[Field, ...]) -> dict[str, Any]:
    """The fields that stand in an address; those that are lists may stand there several times."""
    try:
        pairs = parse_qsl(address.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise ProtocolError(400, f"the address is not UTF-8, or has more than {_MOST_FIELDS} fields") from None
    known, found = {one.name: one for one in fields}, dict[str, Any]()
    for name, value in pairs:
        field = known.get(name)
        if field is not None and field.kind == "strings":
            found.setdefault(name, []).append(value)
        elif name in found:
            raise ProtocolError(400, f"two values of {name!r}, there may be one")
        else:
            found[name] = value if field is None else _typed(field, value)
    return found


def _typed(field: Field, value: str) -> Any:
    try:
        if field.kind == "integer" and len(value) < 20:
            return int(value)
        if field.kind == "number" and len(value) < 40:
            return float(value)
    except ValueError:
        return value
    if field.kind == "boolean":
        return {"true": True, "false": False}.get(value, value)
    return value


async def saved(exchange: Exchange, path: Path, most: int) -> int:
    """Write the body to a file, as it comes; its bytes. Raises status 413."""
    length = exchange.header("content-length")
    too_long = ProtocolError(413, f"the files of a scratch graph have at most {max(most, 0):,} bytes more", {"Connection": "close"})
    if length and length.isdigit() and int(length) > most:
        raise too_long
    size = 0
    with path.open("xb") as file:
        async for part in exchange.arriving():
            size += len(part)
            if size > most:
                break
            file.write(part)
    if size > most:
        path.unlink(missing_ok=True)
        raise too_long
    if not size:
        raise ProtocolError(400, "the file is empty")
    return size
