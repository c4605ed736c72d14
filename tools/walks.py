"""Count the files of the package that a call enters, and how often control moves from one file to another.

    python tools/walks.py            a line for each walk
    python tools/walks.py --files    and the files of each, in the order they are entered

A walk runs twice, and the second run counts, without imports and what the first run has cached; its program has another
text, so it is parsed and lowered again. A move is a call from a function in one file to a function in another.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import condgraph
from condgraph.cypher.compile.plan import compile_plan
from condgraph.engine.stored_schema import StoredSchema, describe_schema
from condgraph.languages.registry import lower
from condgraph.samples import FOLDER

PACKAGE = str(Path(condgraph.__file__).parent)


class Walk:
    """Counts the files and moves of a call."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self.moves = 0

    def _event(self, frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(PACKAGE):
            return
        self.files.setdefault(file)
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(PACKAGE):
            caller = caller.f_back
        self.moves += caller is not None and caller.f_code.co_filename != file

    def of(self, call: Callable[[], object]) -> Walk:
        """Count what a call does."""
        sys.setprofile(self._event)
        try:
            call()
        finally:
            sys.setprofile(None)
        return self


def walks(folder: Path) -> dict[str, Callable[[str], object]]:
    """Return the calls to walk; each takes a word that makes the text of its program a new one."""
    graph = condgraph.open()
    graph.load(FOLDER / "countries.json")
    schema = StoredSchema(describe_schema(graph.current))

    def program(name: str) -> str:
        return f"Find({name}) Relate(capital, forward) QueryName()"

    def to_cypher(name: str) -> str:
        # As for a graph on Neo4j: against the stored schema. The passes are part of `lower`.
        return compile_plan(lower(schema, program(name), "kopl", {}).plan, "g", schema).text

    def load(name: str) -> object:
        return condgraph.open(folder / name).load(FOLDER / "mountains.csv", key="mountain")

    return {
        "KoPL, new text, to its answer in process": lambda name: graph.kopl(program(name)).texts,
        "the same with evidence": lambda name: list(graph.kopl(program(name)).evidence),
        "KoPL to the Cypher text": to_cypher,
        "a CSV into a store": load,
        "ask with a model of one line": lambda name: graph.ask("What is its capital?", lambda _: program(name), via="kopl"),
    }


def main() -> None:
    """Print the walks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", action="store_true", help="the files of each walk, in the order they are entered")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, call in walks(Path(folder)).items():
            call("Nepal")
            walk = Walk().of(lambda call=call: call("India"))  # type: ignore[misc]
            print(f"{len(walk.files):4} files {walk.moves:6,} moves  {name}")
            if options.files:
                print(*(f"       {file[len(PACKAGE) + 1 :]}" for file in walk.files), sep="\n")


if __name__ == "__main__":
    main()
