"""Writes a graph as CSV files for Neo4j's import tool (`neo4j-admin database import`), and reads it back."""

from __future__ import annotations

import json
import shlex
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from condgraph.cypher.labels import Labelling, Labels, chosen
from condgraph.cypher.layout import schema as layout
from condgraph.cypher.load.batches import CELL, cells, order_of
from condgraph.cypher.load.pull import FIELDS, entities_of, places_of, statements_of, value_in
from condgraph.cypher.load.write import Pairs, validity_of
from condgraph.engine.bounds import check
from condgraph.engine.errors import LoadError, OptionError, pyarrow_or_error
from condgraph.engine.facts import EntityKind, Item, Member, Ref, Source, Sourced, Subclass
from condgraph.engine.identity import content_digest, statement_ids
from condgraph.engine.snapshot.build import texts_of
from condgraph.engine.snapshot.readback import place_raws
from condgraph.engine.values import Kind, Value
from condgraph.loaders.base import Reading
from condgraph.loaders.export import ARGUMENTS
from condgraph.overview.survey import described, packed, survey

if TYPE_CHECKING:
    import pyarrow as pa

    from condgraph.engine.snapshot.snapshot import Snapshot


# -- Columns -----------------------------------------------------------------------------------------
# The data of `write` as columns.


#: Separator of list elements; a control character, so that names may contain any other.
SEPARATOR: Final = "\x1f"
#: Records whose columns are built together.
_CHUNK: Final = 50_000

Ints = NDArray[Any]
Columns = dict[str, Any]


def text_column(snapshot: Snapshot, numbers: Ints) -> pa.Array:
    """Return texts by number; null where a number is negative."""
    import pyarrow as pa

    present = numbers >= 0
    result = np.full(len(numbers), None, object)
    result[present] = snapshot.texts.take(numbers[present])
    return pa.array(result, pa.large_string())


def value_columns(snapshot: Snapshot, family: str, part: slice) -> Columns:
    """Return the properties of values, named as in `batches.CELL`."""
    import pyarrow as pa

    types = {"number": pa.float64(), **dict.fromkeys(("start", "end", "precision"), pa.int64())}
    rows = cells(snapshot, family, np.arange(part.start, part.stop))
    columns: Columns = dict(zip(CELL, zip(*rows, strict=True), strict=True))
    columns["ranks"] = _join_lists(columns["ranks"])
    arrays = {name: pa.array(column, types.get(name, pa.large_string())) for name, column in columns.items()}
    return arrays | {"number": _numbers(arrays["number"])}


def _join_lists(lists: Sequence[list[str] | None]) -> list[str | None]:
    return [None if texts is None else SEPARATOR.join(texts) for texts in lists]


class StatementColumns:
    """Columns for the places and the validity of statements; `sources` are the names of the sources."""

    def __init__(self, snapshot: Snapshot, sources: Sequence[str]) -> None:
        self._snapshot, self._get, self._source_names = snapshot, snapshot.arrays.get, sources

    def places(self, numbers: Ints) -> Columns:
        """Return the lists `sources` and `rows` of statements."""
        import pyarrow as pa
        import pyarrow.compute as pc

        names = pa.array(self._source_names, pa.large_string())
        sources = names.take(pa.array(self._snapshot.source[numbers].astype(np.int64)))
        rows = pc.cast(pa.array(self._snapshot.row[numbers].astype(np.int64)), pa.large_string())
        owners = self._get("prov.stmt")
        begin, end = np.searchsorted(owners, [numbers[0], numbers[-1] + 1]) if len(numbers) else (0, 0)
        if begin < end:
            # Few statements have further sources: their lists are extended one by one.
            all_sources, all_rows = sources.to_pylist(), rows.to_pylist()
            further = zip(*(self._get(f"prov.{name}")[begin:end].tolist() for name in ("stmt", "src", "row")), strict=True)
            for statement, source, row in further:
                index = statement - int(numbers[0])
                all_sources[index] += SEPARATOR + self._source_names[source]
                all_rows[index] += f"{SEPARATOR}{row}"
            sources, rows = pa.array(all_sources, pa.large_string()), pa.array(all_rows, pa.large_string())
        return {"sources": sources, "rows": rows}

    def validity(self, numbers: Ints) -> Columns:
        """Return `since`, `until`, `span` and `valid` of statements."""
        import pyarrow as pa

        if not len(self._get("val.stmt")) or not len(numbers):
            return {}
        types = {"since": pa.int64(), "until": pa.int64(), "span": pa.int64(), "valid": pa.large_string()}
        columns = zip(*validity_of(self._snapshot, numbers), strict=True)
        return {name: pa.array(column, kind) for (name, kind), column in zip(types.items(), columns, strict=True)}


def _numbers(column: pa.Array) -> pa.Array:
    """Return floats, as texts if any is infinite: the tool has a spelling of its own."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pc.any(pc.is_inf(column)).as_py():
        return column
    return pc.replace_substring(pc.cast(column, pa.large_string()), "inf", "Infinity")


def chunks(size: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of records whose columns are built together."""
    for low in range(0, size, _CHUNK):
        yield low, min(low + _CHUNK, size)


# -- Files -----------------------------------------------------------------------------------------
# CSV files with headers, and the command that imports them.


_TYPES: Final = {
    "kind": "string",
    "number": "double",
    "start": "long",
    "end": "long",
    "precision": "long",
    "ranks": "string[]",
    "sid": "long",
    "sources": "string[]",
    "rows": "long[]",
    "since": "long",
    "until": "long",
    "span": "long",
    "row": "long",
    "relations": "long",
    "attributes": "long",
    "qualifiers": "long",
    "format": "long",
    "complete": "boolean",
    "bulk": "boolean",
    "declares": "boolean",
}

_ABOUT: Final = """# Fills the empty database neo4j of a stopped server (Neo4j 5.26 or later); run it as the server's user, with
# neo4j-admin in the PATH. The indexes are made by `condgraph` when the graph is opened for the first time.
set -e
"""


#: The file with the checksums of the others.
_CHECKSUMS: Final = "checksums.json"


def _checksum(path: Path) -> str:
    """Return the CRC-32 of a file."""
    result = 0
    with path.open("rb") as file:
        while data := file.read(1 << 20):
            check()
            result = zlib.crc32(data, result)
    return f"{result:08x}"


class ImportFiles:
    """The files of one import in a folder; `parts` are the arguments that name them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.parts: list[str] = []

    def add(self, what: str, name: str, columns: Columns, types: dict[str, str] | None = None, *, append: bool = False) -> None:
        """Write columns to a file, with the header in another, and add both to the command."""
        import pyarrow as pa
        import pyarrow.csv

        self.folder.mkdir(parents=True, exist_ok=True)
        known = _TYPES | (types or {})
        if not append:
            header = ",".join(column if column.startswith(":") else f"{column}:{known.get(column, 'string')}" for column in columns)
            (self.folder / f"{name}-header.csv").write_text(header + "\n", encoding="utf-8")
            # Neo4j 2026 wants a folder in each path.
            self.parts.append(f"--{what}=./{name}-header.csv,./{name}.csv")
        # Texts are quoted, so that an empty one differs from null; numbers need no quotes.
        options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="needed")
        with (self.folder / f"{name}.csv").open("ab" if append else "wb") as file:
            pyarrow.csv.write_csv(pa.table(columns), file, options)

    def finish(self, longest: int) -> None:
        """Write the command, and its arguments to a file of their own; `longest` is the size of the longest text in bytes."""
        (self.folder / ARGUMENTS).write_text("\n".join(self.arguments(longest)) + "\n", encoding="utf-8")
        (self.folder / "import.sh").write_text(f"#!/bin/sh\n{_ABOUT}{self.command(longest)}\n", encoding="utf-8")
        names = [ARGUMENTS, *(path.removeprefix("./") for part in self.parts for path in part.rpartition("=")[2].split(","))]
        (self.folder / _CHECKSUMS).write_text(json.dumps({name: _checksum(self.folder / name) for name in names}), encoding="utf-8")

    def arguments(self, longest: int) -> list[str]:
        """Return the arguments of `neo4j-admin` for the import; paths are relative to the folder."""
        return [
            "database",
            "import",
            "full",
            "neo4j",
            f"--array-delimiter=U+{ord(SEPARATOR):04X}",
            "--multiline-fields=true",
            f"--read-buffer-size={max(4 << 20, 4 * longest)}",
            *self.parts,
        ]

    def command(self, longest: int) -> str:
        return 'cd "$(dirname "$0")" && neo4j-admin ' + " ".join(map(shlex.quote, self.arguments(longest)))


# -- The writer ------------------------------------------------------------------------------------
# The files hold what `write` writes, in the same layout. The tool fills an empty database; whoever opens
# the graph first creates the indexes.


class BulkWriter:
    """Writes the files of one snapshot into a folder."""

    def __init__(self, snapshot: Snapshot, graph: str, folder: Path) -> None:
        self.snapshot, self.graph, self._files = snapshot, graph, ImportFiles(folder)
        self._get = snapshot.arrays.get
        self._sids = statement_ids(snapshot)
        self._sources = [snapshot.source_of(i) for i in range(len(self._get("src.name")))]
        names = [source.name for source in self._sources]
        if any(SEPARATOR in name for name in names):
            raise OptionError("the name of a source holds the control character U+001F, which separates lists in the files")
        self._source_names = names
        self._statements = StatementColumns(snapshot, names)
        self._raws = {number: json.dumps(raws, ensure_ascii=False) for number, raws in place_raws(snapshot).items()}
        self._content = content_digest(snapshot)
        self._survey = packed(survey(snapshot), self._content)
        # The tool fills an empty database, where no label is in use.
        names, self.remarks = chosen(Labels(snapshot).counts())
        self._labelling = Labelling(tuple(names))

    def write(self) -> int:
        """Write everything; return the number of statements."""
        self._meta()
        self._entities()
        self._relations()
        self._attributes()
        self._qualifiers()
        self._concepts()
        longest = max(int(np.diff(self._get("pool.offsets")).max(initial=0)), len(self._survey))
        self._files.finish(longest)
        return self.snapshot.statements

    # -- nodes without statements ------------------------------------------------------------------

    def _meta(self) -> None:
        import pyarrow as pa

        snapshot, get = self.snapshot, self._get
        about = {
            "name": [self.graph],
            "format": [layout.FORMAT],
            "complete": ["true"],
            "bulk": ["true"],
            "declares": ["true"],
            "content": [self._content],
            "counts": [json.dumps(snapshot.counts)],
            "schema": [json.dumps(described(snapshot))],
            "survey": [self._survey],
            "labels": [self._labelling.stated(snapshot)],
        }
        self._files.add(f"nodes={layout.GRAPH}", "graph", about)
        if self._sources:
            parts = ("name", "location", "format")
            result: Columns = {part: [getattr(source, part) for source in self._sources] for part in parts}
            # A load over Bolt omits them as well.
            for part in ("content", "terms"):
                result[part] = pa.array([getattr(source, part) or None for source in self._sources], pa.string())
            sources = {"graph": [self.graph] * len(self._sources), "number": list(range(len(self._sources))), **result}
            self._files.add(f"nodes={layout.SOURCE}", "sources", sources, {"format": "string", "number": "long"})
        if snapshot.predicate_count:
            predicates = {
                "graph": [self.graph] * snapshot.predicate_count,
                "key": self._predicates(layout.predicate_key),
                "name": self._predicates(str),
                "relations": np.diff(get("rel.offsets")),
                "attributes": np.diff(get("att.offsets")),
                "qualifiers": np.bincount(get("q.key"), minlength=snapshot.predicate_count),
            }
            self._files.add(f"nodes={layout.PREDICATE}", "predicates", predicates)

    def _entities(self) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        snapshot = self.snapshot
        labels = {
            EntityKind.ENTITY: layout.ENTITY,
            EntityKind.CONCEPT: f"{layout.ENTITY}{SEPARATOR}{layout.CONCEPT}",
            EntityKind.ROW: f"{layout.ENTITY}{SEPARATOR}{layout.ROW}",
        }
        words = pa.array([labels[kind] for kind in sorted(labels)])
        concepts = Labels(snapshot, set(self._labelling.after or ()))
        places, declared = self._get("ent.source"), texts_of(snapshot)
        for low, high in chunks(snapshot.entities):
            ids, names = (snapshot.texts.take(column[low:high]) for column in (snapshot.entity_id, snapshot.entity_name))
            columns: Columns = {
                ":ID(e){id-type:long}": np.arange(low, high),
                ":LABEL": pc.binary_join_element_wise(
                    words.take(pa.array(snapshot.entity_kind[low:high].astype(np.int64))),
                    pa.array([SEPARATOR.join(some) or None for some in concepts.of(np.arange(low, high))], pa.string()),
                    SEPARATOR,
                    null_handling="skip",
                ),
                "graph": pa.array([self.graph]).take(pa.array(np.zeros(high - low, np.int64))),
                "handle": list(map(layout.index_key, ids)),
                "id": ids,
                "name": names,
                "key": list(map(layout.index_key, names)),
                "kind": snapshot.entity_kind[low:high],
                "order": pa.array(map(order_of, names), pa.large_string()),
                "ranks": pa.array(_join_lists(list(map(layout.inner_ranks, names))), pa.large_string()),
                "declared": pa.array([declared.get(number) for number in range(low, high)], pa.string()),
            }
            if len(places):
                numbers = places[low:high].astype(np.int64)
                columns["source"] = pa.array(self._source_names).take(pa.array(numbers, mask=numbers < 0))
                columns["row"] = pa.array(self._get("ent.row")[low:high].astype(np.int64), mask=numbers < 0)
            self._files.add("nodes", "entities", columns, {"kind": "long"}, append=low > 0)

    # -- statements --------------------------------------------------------------------------------

    def _relations(self) -> None:
        import pyarrow as pa

        snapshot = self.snapshot
        owners = np.unique(self._get("q.owner"))
        qualified = owners[: snapshot.split(owners)].astype(np.int64)
        types, names = self._predicates(layout.type_of), self._predicates(str)
        for low, high in chunks(snapshot.relations):
            numbers = np.arange(low, high, dtype=np.int32)
            columns: Columns = {
                ":START_ID(e)": snapshot.relation_subject[low:high],
                ":END_ID(e)": snapshot.relation_object[low:high],
                ":TYPE": types.take(pa.array(snapshot.predicates(numbers))),
                "sid": self._sids[low:high],
                **self._statements.places(numbers),
                **self._statements.validity(numbers),
            }
            self._files.add("relationships", "relations", columns, append=low > 0)
        if not len(qualified):
            return
        result = qualified.astype(np.int32)
        self._files.add(
            f"nodes={layout.STATEMENT}",
            "statements",
            {
                ":ID(s){id-type:long}": qualified,
                "graph": [self.graph] * len(qualified),
                "sid": self._sids[qualified],
                "name": names.take(pa.array(snapshot.predicates(result))),
            },
        )
        for word, ends in (("SUBJECT", snapshot.relation_subject), ("OBJECT", snapshot.relation_object)):
            self._files.add(f"relationships={word}", word.lower(), {":START_ID(s)": qualified, ":END_ID(e)": ends[qualified]})

    def _attributes(self) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        snapshot, first = self.snapshot, self.snapshot.relations
        types, keys = self._predicates(layout.type_of), self._predicates(layout.predicate_key)
        raws, ellipsis = self._get("att.raw"), [pa.scalar(text, pa.large_string()) for text in ("…", "")]
        for low, high in chunks(snapshot.statements - first):
            numbers = np.arange(first + low, first + high, dtype=np.int32)
            predicates = pa.array(snapshot.predicates(numbers))
            properties = value_columns(snapshot, "att", slice(low, high))
            raw = text_column(snapshot, raws[low:high]) if len(raws) else pa.nulls(high - low, pa.large_string())
            shown = pc.coalesce(raw, properties["text"])
            values: Columns = {
                ":ID(v){id-type:long}": np.arange(low, high),
                "graph": pa.array([self.graph]).take(pa.array(np.zeros(high - low, np.int64))),
                "sid": self._sids[first + low : first + high],
                **self._statements.places(numbers),
                "predicate": keys.take(predicates),
                "name": pc.if_else(
                    pc.greater(pc.utf8_length(shown), layout.CAPTION),
                    pc.binary_join_element_wise(pc.utf8_slice_codeunits(shown, 0, layout.CAPTION - 1), *ellipsis),
                    shown,
                ),
                "raw": raw,
                "raws": pa.array([self._raws.get(number) for number in numbers.tolist()], pa.string()),
                **properties,
            }
            self._files.add(f"nodes={layout.VALUE}", "values", values, append=low > 0)
            edges: Columns = {
                ":START_ID(e)": snapshot.attribute_subject[low:high],
                ":END_ID(v)": np.arange(low, high),
                ":TYPE": types.take(predicates),
                "sid": values["sid"],
                **self._statements.validity(numbers),
            }
            self._files.add("relationships", "attributes", edges, append=low > 0)

    def _qualifiers(self) -> None:
        import pyarrow as pa

        snapshot, owners = self.snapshot, self._get("q.owner")
        names = self._predicates(str)
        refs, entity = self._get("q.ref"), self._get("q.kind") == Kind.ENTITY
        started = {"s": False, "v": False, "is": False}
        for low, high in chunks(len(owners)):
            part = slice(low, high)
            entity_mask = entity[part]
            columns: Columns = {
                ":ID(q){id-type:long}": np.arange(low, high),
                "graph": pa.array([self.graph]).take(pa.array(np.zeros(high - low, np.int64))),
                "name": names.take(pa.array(self._get("q.key")[part].astype(np.int64))),
                **value_columns(snapshot, "q", part),
                "id": text_column(
                    snapshot, np.where(entity_mask, snapshot.entity_id.take(np.where(entity_mask, refs[part], 0)), -1)
                )
                if snapshot.entities
                else pa.nulls(high - low, pa.large_string()),
            }
            self._files.add(f"nodes={layout.QUALIFIER}", "qualifiers", columns, append=low > 0)
            relation = owners[part] < snapshot.relations
            for group, mask, shift in (("s", relation, 0), ("v", ~relation, snapshot.relations)):
                if mask.any():
                    edges = {f":START_ID({group})": owners[part][mask] - shift, ":END_ID(q)": np.arange(low, high)[mask]}
                    self._files.add("relationships=QUALIFIER", f"qualifiers_of_{group}", edges, append=started[group])
                    started[group] = True
            if entity_mask.any():
                edges = {":START_ID(q)": np.arange(low, high)[entity_mask], ":END_ID(e)": refs[part][entity_mask]}
                self._files.add("relationships=IS", "is", edges, append=started["is"])
                started["is"] = True

    def _concepts(self) -> None:
        for prefix, word in (("mem", "MEMBER_OF"), ("sub", "SUBCLASS_OF")):
            pairs = Pairs(self.snapshot, prefix)
            for low, high in chunks(len(pairs.keys)):
                first, second = np.divmod(pairs.keys[low:high], self.snapshot.entities)
                bounds = list(zip(pairs.bounds[low:high].tolist(), pairs.bounds[low + 1 : high + 1].tolist(), strict=True))
                sources, rows = pairs.sources.tolist(), pairs.rows.tolist()
                columns: Columns = {
                    ":START_ID(e)": first,
                    ":END_ID(e)": second,
                    "sources": [SEPARATOR.join(self._source_names[i] for i in sources[a:b]) or None for a, b in bounds],
                    "rows": [SEPARATOR.join(map(str, rows[a:b])) or None for a, b in bounds],
                }
                self._files.add(f"relationships={word}", word.lower(), columns, append=low > 0)

    # -- columns -----------------------------------------------------------------------------------

    def _predicates(self, make: Callable[[str], str]) -> pa.Array:
        import pyarrow as pa

        return pa.array([make(self.snapshot.predicate_name(i)) for i in range(self.snapshot.predicate_count)], pa.large_string())


def write_import(snapshot: Snapshot, graph: str, folder: Path) -> int:
    """Write the files and the command (`import.sh`; its arguments in `import.args`, one a line).

    Returns the number of statements. Raises `MissingExtraError` without pyarrow.
    """
    pyarrow_or_error()
    try:
        writer = BulkWriter(snapshot, graph, folder)
        for remark in writer.remarks:
            warnings.warn(remark, stacklevel=4)
        return writer.write()
    except OSError as error:
        raise OptionError(f"{folder} cannot be written: {error.strerror}") from None


# -- Reading ---------------------------------------------------------------------------------------
# The order of the records in the files is that in which they are written.


def read_import(folder: Path, reading: Reading) -> Iterator[Item]:
    """Yield the items of an export in pieces; only the ids of entities are in memory completely."""
    pa = pyarrow_or_error()
    try:
        yield from _Exported(folder, reading).items()
    except (KeyError, IndexError, TypeError, ValueError, OSError, OverflowError, RecursionError, pa.ArrowException) as error:
        raise LoadError(f"the files of the export do not fit together: {str(error) or error!r:.300}", file=str(folder)) from None


class _Exported:
    """The files of an export, as `import.args` names them."""

    def __init__(self, folder: Path, reading: Reading) -> None:
        self._folder, self._reading = folder, reading
        if (folder / _CHECKSUMS).exists():
            checksums = dict(json.loads((folder / _CHECKSUMS).read_text(encoding="utf-8")))
            if changed := [name for name, checksum in checksums.items() if _checksum(folder / Path(name).name) != checksum]:
                raise LoadError(
                    f"{changed[0]} is not as it was written", file=str(folder),
                    hint=f"export the graph again; without {_CHECKSUMS}, the files are read as they are",
                )  # fmt: skip
        arguments = (folder / ARGUMENTS).read_text(encoding="utf-8").splitlines()
        self._names = {argument.rpartition("/")[2][: -len(".csv")] for argument in arguments if argument.endswith(".csv")}
        self._counts: dict[str, int] = {}
        (self._block,) = (int(argument.rpartition("=")[2]) for argument in arguments if argument.startswith("--read-buffer-size="))
        self._ids: list[str] = []
        self._statements = 0

    def _rows(self, file: str, *wanted: str) -> Iterator[list[Any]]:
        """Yield the wanted columns of a file, if the export has it; a column that it does not have is null."""
        import pyarrow as pa
        import pyarrow.csv

        if file not in self._names:
            return
        columns = (self._folder / f"{file}-header.csv").read_text(encoding="utf-8").rstrip("\n").split(",")
        kinds = {name or kind.partition("(")[0]: kind for name, _, kind in (column.partition(":") for column in columns)}
        types = {
            name: pa.float64() if kind == "double" else pa.int64() if kind == "long" or "(" in kind else pa.large_string()
            for name, kind in kinds.items()
        }
        with pyarrow.csv.open_csv(
            self._folder / f"{file}.csv",
            pyarrow.csv.ReadOptions(column_names=list(kinds), block_size=self._block),
            pyarrow.csv.ParseOptions(newlines_in_values=True),
            pyarrow.csv.ConvertOptions(
                column_types=types, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
            ),
        ) as batches:
            for batch in batches:
                check()
                self._reading.advance(batch.num_rows)
                lists = [batch[name].to_pylist() if name in kinds else [None] * batch.num_rows for name in wanted]
                for at, name in enumerate(wanted):
                    if kinds.get(name, "").endswith("[]"):
                        make = int if kinds[name] == "long[]" else str
                        lists[at] = [None if cell is None else list(map(make, cell.split(SEPARATOR))) for cell in lists[at]]
                yield from map(list, zip(*lists, strict=True))

    def items(self) -> Iterator[Item]:
        """Yield all items, sources first."""
        ((version, about),) = self._rows("graph", "format", "counts")
        self._counts = json.loads(about)
        if version != layout.FORMAT:
            raise LoadError(f"the export is of format {version}; this version reads {layout.FORMAT}", file=str(self._folder))
        sources = [
            Source(*(text or "" for text in about))
            for about in self._rows("sources", "name", "location", "format", "content", "terms")
        ]
        yield from sources
        yield from entities_of(self._entities(), [source.name for source in sources], known=True)
        for build, file in ((Member, "member_of"), (Subclass, "subclass_of")):
            for below, above, names, rows in self._rows(file, "START_ID", "END_ID", "sources", "rows"):
                if names is not None:
                    yield Sourced(build(self._ids[below], self._ids[above]), places_of(names, rows))
        owned = groupby(self._qualifiers(), itemgetter(0))
        following = next(owned, None)

        def qualifiers(number: int) -> list[tuple[str, Ref | Value]] | None:
            nonlocal following
            if following is None or following[0] != number:
                return None
            result = [pair for _, pair in following[1]]
            following = next(owned, None)
            return result

        yield from statements_of(self._relations(), self._attributes(), qualifiers)
        read, counts = (len(self._ids), self._statements), self._counts
        if read != (counts["entities"] + counts["concepts"], counts["relations"] + counts["attributes"]) or following is not None:
            raise ValueError(f"entities and statements are {read}, of {counts}, or qualifiers are left over")

    def _entities(self) -> Iterator[list[Any]]:
        for number, *about in self._rows("entities", "ID", "id", "name", "kind", "source", "row", "declared"):
            if number != len(self._ids):
                raise ValueError("entities are not numbered in order")
            self._ids.append(about[0])
            yield about

    def _relations(self) -> Iterator[list[Any]]:
        for subject, kind, thing, *places in self._rows("relations", "START_ID", "TYPE", "END_ID", "sources", "rows"):
            yield [self._ids[subject], kind, self._ids[thing], self._statements, *places]
            self._statements += 1

    def _attributes(self) -> Iterator[list[Any]]:
        values = self._rows("values", "ID", "sources", "rows", "raws", *FIELDS)
        for (subject, kind, node), (ident, *fields) in zip(
            self._rows("attributes", "START_ID", "TYPE", "END_ID"), values, strict=True
        ):
            if node != ident:
                raise ValueError("an attribute leads to another value")
            yield [self._ids[subject], kind, self._statements, *fields]
            self._statements += 1

    def _qualifiers(self) -> Iterator[tuple[int, tuple[str, Ref | Value]]]:
        """Yield qualifiers with the numbers of their statements: those of relations first, then those of attributes."""
        cells = self._rows("qualifiers", "ID", "name", "id", *FIELDS)
        for file in ("qualifiers_of_s", "qualifiers_of_v"):
            first = 0 if file == "qualifiers_of_s" else self._counts["relations"]
            for owner, number in self._rows(file, "START_ID", "END_ID"):
                node, key, ident, *fields = next(cells, (None, "", None))
                if node != number:
                    raise ValueError("a statement leads to another qualifier")
                yield first + owner, (key, value_in(fields) if ident is None else Ref(ident))
