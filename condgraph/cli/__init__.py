"""The command line: `condgraph demo | load | query | match | explain | status | schema | export`.

Results go to standard output, everything else to standard error. `app` lists the commands, which are
grouped into files by subject: `query` (programs, patterns, SPARQL, Cypher), `ask` (with a language model),
`load` (changing a store), `edit` (single statements), `status` (showing or exporting a store),
`evaluate`, `serve` and `mcp`. They share `arguments`, `complete` (shell completion), `render` (answers as
table, JSON, CSV or Arrow) and `exits` (errors as messages and exit codes).
"""

from __future__ import annotations


def main() -> None:
    """Run the command line with the arguments of the process, and exit with its code."""
    # Imported here, so that importing the package as a library does not load the command line's dependencies.
    from condgraph.cli.app import run

    run()


__all__ = ["main"]
