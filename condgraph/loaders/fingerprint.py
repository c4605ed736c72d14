"""How a source is recognised when it is loaded again: a fingerprint of its data and of the options
it is read with.

Files are known by their bytes, folders by those of all their files, frames by their columns, other
objects by what they print. Two fingerprints that differ may still stand for equal data (a column of
another width, say); two that are equal do not stand for two.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any

from condgraph.engine.facts import Source
from condgraph.engine.origins import PARTS
from condgraph.loaders.database.server import DatabaseUrl
from condgraph.loaders.folder import load as folder
from condgraph.loaders.folder.load import TableFiles
from condgraph.loaders.property_graph.files import GraphFiles
from condgraph.loaders.recognise import Recognised
from condgraph.loaders.table.arrow import is_frame


def known_by(
    found: Iterable[Recognised], options: Mapping[str, Any], known: Iterable[Source], *, named: bool, changes: bool = False
) -> list[Recognised]:
    """What is to be loaded, each source with its fingerprint.

    Unless it was `named` by its caller, an object that is no file gets a name that no source of the
    graph has (`known`), or that of the source with the very same content. So do several files that
    are one source, and are called like their folder, but for a load that `changes` what is there.
    """
    taken = {source.name: source for source in known}
    # Several tables in one place are sources of their own, with the fingerprint of the whole.
    places = {name.rpartition("/")[0]: source for name, source in taken.items() if "/" in name}
    fingerprinted: list[Recognised] = []
    for one in found:
        source = replace(one.source, content=_content(one, options))
        own = isinstance(one.data, (Path, DatabaseUrl, GraphFiles)) or (changes and isinstance(one.data, TableFiles))
        if not named and not own:
            source = replace(source, name=_free(source, places | taken if isinstance(one.data, TableFiles) else taken))
        taken[source.name] = source
        fingerprinted.append(replace(one, source=source))
    return fingerprinted


def _free(source: Source, taken: Mapping[str, Source]) -> str:
    name, count = source.name, 1
    while name in taken and taken[name].content != source.content:
        count += 1
        name = f"{source.name} {count}"
    return name


def _content(one: Recognised, options: Mapping[str, Any]) -> str:
    """The fingerprint of a source: of its data, and of how it is read; empty where its data can be
    read only once.
    """
    if isinstance(one.data, DatabaseUrl):
        data = one.data.content(options)
    elif isinstance(one.data, GraphFiles | TableFiles):
        data = "".join(map(_of_path, one.data.paths))
    else:
        # A file that describes tables stands for those beside it.
        described = one.format.name == folder.FORMAT.name and isinstance(one.data, Path) and one.data.is_file()
        data = _of_path(one.data.parent if described else one.data) if isinstance(one.data, Path) else _of_object(one.data)
    if not data:
        return ""
    given = {name: value for name, value in options.items() if value is not None}
    how = json.dumps([one.format.name, given], sort_keys=True, default=str)
    return data + PARTS + blake2b(how.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def _of_path(path: Path) -> str:
    digest = blake2b(digest_size=12)
    try:
        for one in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if path.is_dir():
                digest.update(f"\0{one.relative_to(path)}\0".encode("utf-8", "surrogateescape"))
            mode = one.stat().st_mode
            if stat.S_ISREG(mode):
                with one.open("rb") as stream:
                    digest.update(file_digest(stream, lambda: blake2b(digest_size=12)).digest())
            elif not stat.S_ISDIR(mode):
                # A pipe gives its bytes once, to the loader.
                return ""
    except OSError:
        # The loader says what is wrong with it.
        return ""
    return digest.hexdigest()


def _of_object(data: Any) -> str:
    digest = blake2b(digest_size=12)
    if type(data).__name__ in ("RecordBatchReader", "LazyFrame") or hasattr(data, "__next__"):
        # Reading it here would leave nothing for the loader, or compute it twice.
        return ""
    if is_frame(data):
        _frame(data, digest)
    else:
        pieces: Any = data
        if not isinstance(data, (Mapping, Sequence)):
            # A graph of RDF has no order of its own.
            pieces = sorted(map(str, data)) if hasattr(data, "__iter__") else [repr(data)]
        for piece in pieces.items() if isinstance(pieces, Mapping) else pieces:
            digest.update(repr(piece).encode("utf-8", "surrogatepass"))
            digest.update(b"\0")
    return digest.hexdigest()


def _frame(frame: Any, digest: blake2b) -> None:
    """The columns of a frame: their names, types and values."""
    import pyarrow as pa

    if type(frame).__module__.partition(".")[0] == "pandas":
        digest.update(repr((list(frame.columns), frame.index.names)).encode("utf-8", "surrogatepass"))
        columns = [frame.iloc[:, at] for at in range(frame.shape[1])]
        columns += [frame.index.get_level_values(at) for at in range(frame.index.nlevels)]
    else:
        table = pa.table(frame) if not isinstance(frame, pa.RecordBatch) else pa.Table.from_batches([frame])
        digest.update(repr(table.column_names).encode("utf-8", "surrogatepass"))
        columns = list(table.columns)
    for column in columns:
        try:
            array = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([pa.array(column, from_pandas=True)])
            values = pa.table({"": array.combine_chunks()})
            digest.update(str(array.type).encode())
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, values.schema) as writer:
                writer.write_table(values)
            digest.update(sink.getvalue())
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            # Columns that only Python objects hold.
            listed = column.to_numpy() if hasattr(column, "to_numpy") else column
            digest.update(repr(listed.tolist() if hasattr(listed, "tolist") else list(listed)).encode("utf-8", "surrogatepass"))
