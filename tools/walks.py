"""Walks through the code: the files of the package that a call enters, and how often control moves from one file to another.

    python tools/walks.py            a line for each walk
    python tools/walks.py --files    and the files of each, in the order they are entered

A walk runs twice, and the second run counts, without imports and what the first has cached; the text of a program differs, so that
it is read and lowered anew. A move is a call from a function of one file to a function of another file.
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
    """Counts files and moves of what runs between `start` and `stop`."""

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
    """By a name: what is walked, given a word that makes the program a new text."""
    graph = condgraph.open()
    graph.load(FOLDER / "countries.json")
    schema = StoredSchema(describe_schema(graph.current))

    def program(name: str) -> str:
        return f"Find({name}) Relate(capital, forward) QueryName()"

    def to_cypher(name: str) -> str:
        # As a graph on Neo4j does it: against the schema that is stored there. The passes are part of `lower`.
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
