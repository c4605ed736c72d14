"""The command line: `condgraph demo | load | query | match | explain | status | schema | export`.

Results go to standard output, everything else to standard error. `app` lists the commands, which are
in files by subject: `query` (programs, patterns, SPARQL, Cypher), `ask` (with a language model),
`load` (what changes a store), `status` (what shows or writes one), `evaluate`, `serve`, `mcp`. They
share `arguments`, `complete` (completion in a shell), `render` (answers as table, JSON, CSV or Arrow,
and progress bars) and `exits` (errors as messages and exit codes).
"""

from __future__ import annotations


def main() -> None:
    """Run the command line with the arguments of the process, and leave with its exit code."""
    # Imported here, so that whoever imports the package for its API does not pay for terminals.
    from condgraph.cli.app import run

    run()


__all__ = ["main"]
