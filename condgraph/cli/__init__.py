"""The command line: `condgraph demo | load | query | match | explain | status | schema | export`.

Results go to standard output, everything else to standard error. In order of control flow: `app`
(the commands), `arguments` (what several commands take), `match` (the command for patterns),
`schema` (what a store holds),
`options` (texts to what the library takes), `progress` (a bar while loading), `render` (answers as
table, JSON, CSV or Arrow), `exits` (errors to messages and exit codes).
"""

from __future__ import annotations


def main() -> None:
    """Run the command line with the arguments of the process, and leave with its exit code."""
    # Imported here, so that whoever imports the package for its API does not pay for terminals.
    from condgraph.cli.app import run

    run()


__all__ = ["main"]
