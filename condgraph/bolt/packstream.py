"""PackStream, the encoding of Bolt: packs and unpacks values, in linear time and with limited depth."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from condgraph.engine.errors import CondgraphError, OptionError

#: Most levels of lists, maps and structures; most values in one message.
_MAX_DEPTH: Final = 100
_MAX_VALUES: Final = 1_000_000
_INT8, _INT16, _INT32, _INT64 = (struct.Struct(form) for form in (">b", ">h", ">i", ">q"))
_SIZE16, _SIZE32, _FLOAT = struct.Struct(">H"), struct.Struct(">I"), struct.Struct(">d")
#: The markers of each type: for a size below 16 (0: none), and for sizes of 8, 16 and 32 bits.
_TEXT, _BYTES = (0x80, 0xD0, 0xD1, 0xD2), (0, 0xCC, 0xCD, 0xCE)
_LIST, _MAP = (0x90, 0xD4, 0xD5, 0xD6), (0xA0, 0xD8, 0xD9, 0xDA)
_STRUCTURE: Final = 0xB0
#: Markers from 0xC0 on: the type, and the bytes of its size or value.
_MARKERS: Final[dict[int, tuple[str, int]]] = {
    **{marker: ("text", 1 << at) for at, marker in enumerate(_TEXT[1:])},
    **{marker: ("bytes", 1 << at) for at, marker in enumerate(_BYTES[1:])},
    **{marker: ("list", 1 << at) for at, marker in enumerate(_LIST[1:])},
    **{marker: ("map", 1 << at) for at, marker in enumerate(_MAP[1:])},
    0xC8: ("integer", 1), 0xC9: ("integer", 2), 0xCA: ("integer", 4), 0xCB: ("integer", 8),
}  # fmt: skip


class MalformedError(CondgraphError):
    """Bytes that are not PackStream, or exceed a limit."""

    code = "malformed"


@dataclass(frozen=True, slots=True)
class Structure:
    """A structure: its tag and fields."""

    tag: int
    fields: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Packed:
    """A value that is packed already."""

    data: bytes


# -- packing -----------------------------------------------------------------------------------------


def packed(value: Any) -> bytes:
    """Return a value as bytes.

    Raises `OptionError` for integers of more than 64 bits, values nested more than 100 levels deep, and types that Bolt lacks.
    """
    out = bytearray()
    _pack(value, out, 0)
    return bytes(out)


def _pack(value: Any, out: bytearray, depth: int) -> None:
    kind = type(value)
    if value is None:
        out.append(0xC0)
    elif kind is bool:
        out.append(0xC3 if value else 0xC2)
    elif kind is Packed:
        out += value.data
    elif kind is float:
        out.append(0xC1)
        out += _FLOAT.pack(value)
    elif isinstance(value, str):
        data = value.encode("utf-8", "replace")
        _head(_TEXT, len(data), out)
        out += data
    elif isinstance(value, int):
        _pack_integer(int(value), out)
    elif isinstance(value, bytes | bytearray):
        _head(_BYTES, len(value), out)
        out += value
    elif depth >= _MAX_DEPTH:
        raise OptionError(f"a value nests deeper than {_MAX_DEPTH} levels", hint="return its parts")
    elif isinstance(value, Mapping):
        _head(_MAP, len(value), out)
        for key, item in value.items():
            _pack(str(key), out, depth)
            _pack(item, out, depth + 1)
    elif kind is Structure:
        out.append(_STRUCTURE | len(value.fields))
        out.append(value.tag)
        for field in value.fields:
            _pack(field, out, depth + 1)
    elif isinstance(value, Sequence):
        _head(_LIST, len(value), out)
        for item in value:
            _pack(item, out, depth + 1)
    else:
        raise OptionError(f"Bolt has no type for a {kind.__name__}")


def _head(markers: tuple[int, int, int, int], size: int, out: bytearray) -> None:
    if size < 16 and markers[0]:
        out.append(markers[0] | size)
    elif size < 1 << 8:
        out += bytes((markers[1], size))
    elif size < 1 << 16:
        out.append(markers[2])
        out += _SIZE16.pack(size)
    else:
        out.append(markers[3])
        out += _SIZE32.pack(size)


def _pack_integer(value: int, out: bytearray) -> None:
    if -16 <= value < 128:
        out += _INT8.pack(value)
    elif -(1 << 7) <= value < 1 << 7:
        out += b"\xc8" + _INT8.pack(value)
    elif -(1 << 15) <= value < 1 << 15:
        out += b"\xc9" + _INT16.pack(value)
    elif -(1 << 31) <= value < 1 << 31:
        out += b"\xca" + _INT32.pack(value)
    elif -(1 << 63) <= value < 1 << 63:
        out += b"\xcb" + _INT64.pack(value)
    else:
        raise OptionError(
            "an integer has more than 64 bits, which Bolt does not send", hint="return toString() of it, or toFloat()"
        )


# -- unpacking ---------------------------------------------------------------------------------------


class Unpacker:
    """Reads values from bytes, one after the other. Raises `MalformedError`."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self._remaining = _MAX_VALUES

    @property
    def ended(self) -> bool:
        """Whether all bytes are read."""
        return self.at == len(self.data)

    def head(self) -> tuple[int, int]:
        """Return the tag of a structure, and the number of its fields."""
        marker = self._byte()
        if marker & 0xF0 != _STRUCTURE:
            raise MalformedError("a message is a structure")
        return self._byte(), marker & 0x0F

    def value(self, depth: int = 0) -> Any:
        """Return the next value."""
        self._remaining -= 1
        if self._remaining < 0:
            raise MalformedError(f"a message has more than {_MAX_VALUES:,} values")
        marker = self._byte()
        if marker < 0x80:
            return marker
        if marker >= 0xF0:
            return marker - 0x100
        high, low = marker & 0xF0, marker & 0x0F
        if high == 0x80:
            return self._text(low)
        if high == 0x90:
            return self._list(low, depth)
        if high == 0xA0:
            return self._map(low, depth)
        if high == _STRUCTURE:
            self._check(low, depth)
            tag = self._byte()
            return Structure(tag, tuple([self.value(depth + 1) for _ in range(low)]))
        if marker == 0xC0:
            return None
        if marker == 0xC1:
            return _FLOAT.unpack(self._take(8))[0]
        if marker in (0xC2, 0xC3):
            return marker == 0xC3
        kind, width = _MARKERS.get(marker, ("", 0))
        if not kind:
            raise MalformedError(f"unknown marker {marker:02X}")
        number = int.from_bytes(self._take(width), "big", signed=kind == "integer")
        if kind == "integer":
            return number
        if kind == "text":
            return self._text(number)
        if kind == "bytes":
            return self._take(number)
        return self._list(number, depth) if kind == "list" else self._map(number, depth)

    def _list(self, size: int, depth: int) -> list[Any]:
        self._check(size, depth)
        return [self.value(depth + 1) for _ in range(size)]

    def _map(self, size: int, depth: int) -> dict[str, Any]:
        self._check(2 * size, depth)
        result: dict[str, Any] = {}
        for _ in range(size):
            key = self.value(depth + 1)
            if not isinstance(key, str) or key in result:
                raise MalformedError("a map has a key that is not a text, or one key twice")
            result[key] = self.value(depth + 1)
        return result

    def _check(self, size: int, depth: int) -> None:
        """Refuse a size beyond the data before anything is read: every item takes at least a byte."""
        if size > len(self.data) - self.at:
            raise MalformedError("a message ends within a value")
        if depth >= _MAX_DEPTH:
            raise MalformedError(f"a message nests deeper than {_MAX_DEPTH} levels")

    def _text(self, size: int) -> str:
        try:
            return self._take(size).decode("utf-8")
        except UnicodeDecodeError:
            raise MalformedError("a text is not UTF-8") from None

    def _take(self, size: int) -> bytes:
        end = self.at + size
        if end > len(self.data):
            raise MalformedError("a message ends within a value")
        data, self.at = self.data[self.at : end], end
        return data

    def _byte(self) -> int:
        if self.at >= len(self.data):
            raise MalformedError("a message ends within a value")
        self.at += 1
        return self.data[self.at - 1]


def unpacked(data: bytes) -> Any:
    """Return the single value that the bytes encode. Raises `MalformedError`."""
    unpacker = Unpacker(data)
    value = unpacker.value()
    if not unpacker.ended:
        raise MalformedError("bytes follow a value")
    return value
