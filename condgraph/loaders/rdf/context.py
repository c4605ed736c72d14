"""JSON-LD before the parser gets it: how long the terms of its contexts become.

A context may say `"a": "http://..."`, `"b": "a:..."`, `"c": "b:..."` and so on: a few megabytes of
such terms are gigabytes when they are written out, which the parser does at once. A file is read
here first, and what is too much for it is a `LoadError`.
"""

from __future__ import annotations

import io
import json
from typing import Any, BinaryIO, Final

from condgraph.engine.errors import LoadError

#: Bytes of a file, characters that all terms of its contexts may have, and terms of all contexts
#: with the inherited ones.
MOST_BYTES: Final = 512 << 20
MOST_CHARACTERS: Final = 64 << 20
MOST_TERMS: Final = 100_000_000

_Sizes = dict[str, int]


class _Object(list[tuple[str, Any]]):
    """The pairs of an object: a key may stand there twice."""


def checked_jsonld(stream: BinaryIO, place: str) -> BinaryIO:
    """The same bytes, whose contexts are bounded; raises `LoadError`."""
    data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise LoadError(
            f"JSON-LD is read whole, and may have {MOST_BYTES >> 20} MiB", file=place, hint="N-Quads have no such bound"
        )
    try:
        _Contexts(place).look(json.loads(data, object_pairs_hook=_Object, parse_int=str, parse_float=str), {})
    except json.JSONDecodeError as error:
        raise LoadError(f"syntax error: {error.msg} (column {error.colno})", file=place, row=error.lineno) from None
    except UnicodeDecodeError:
        raise LoadError("syntax error: this is not UTF-8", file=place) from None
    except RecursionError:
        raise LoadError("the source is nested too deeply", file=place) from None
    return io.BytesIO(data)


class _Contexts:
    def __init__(self, place: str) -> None:
        self._place, self._total, self._copied = place, 0, 0

    def look(self, value: Any, known: _Sizes) -> None:
        """Look through a value under the terms that are known there, with how long each is."""
        if isinstance(value, _Object):
            for key, context in value:
                if key == "@context":
                    known = self._within(context, known)
            for key, inner in value:
                if key != "@context":
                    self.look(inner, known)
        elif isinstance(value, list):
            for inner in value:
                self.look(inner, known)

    def _within(self, context: Any, known: _Sizes) -> _Sizes:
        if isinstance(context, _Object):
            written = {key: _iri(value) or key for key, value in context}
            sizes = dict(known)
            vocabulary = max((len(text) for key, text in written.items() if key in ("@vocab", "@base")), default=0)
            for key in written:
                _size(key, written, known, sizes, vocabulary)
            self._total += sum(sizes[key] for key in written)
            self._copied += len(sizes)
            if self._copied > MOST_TERMS:
                raise LoadError(f"contexts within others have more than {MOST_TERMS:,} terms together", file=self._place)
            if self._total > MOST_CHARACTERS:
                raise LoadError(
                    f"the terms of the contexts become more than {MOST_CHARACTERS >> 20} MiB of IRIs",
                    file=self._place,
                    hint="terms are built on each other; write their IRIs out",
                )
            for _, value in context:
                self.look(value, sizes)
            return sizes
        if isinstance(context, list):
            for one in context:
                known = self._within(one, known)
        return known


def _iri(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    return next((one for key, one in value if key == "@id" and isinstance(one, str)), None) if isinstance(value, _Object) else None


def _size(key: str, written: dict[str, str], known: _Sizes, sizes: _Sizes, vocabulary: int) -> None:
    """How long the IRI of a term is: what is written, behind what its prefix is, however many
    prefixes that takes.
    """
    chain: list[str] = []
    seen: set[str] = set()
    at: str | None = key
    while at is not None and at in written and at not in seen:
        if at in sizes and at not in known:
            break
        chain.append(at)
        seen.add(at)
        at = _on(written[at], at, written, known)
    below = 0 if at is None else sizes.get(at, known.get(at, 0))
    for one in reversed(chain):
        below = sizes[one] = len(written[one]) + below + vocabulary


def _on(text: str, key: str, written: dict[str, str], known: _Sizes) -> str | None:
    """The term that an IRI is built on: what it is as a whole, or what stands before its colon."""
    for one in (text, text.partition(":")[0]):
        if one != key and (one in written or one in known):
            return one
    return None
