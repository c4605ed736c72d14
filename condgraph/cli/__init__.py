"""The command line: `condgraph demo | load | query | match | explain | status | schema | export`.

Results go to standard output, everything else to standard error. `app` lists
the commands, which stand in files by subject (`load`, `query`, `match`, `status`, ...). Shared are
`arguments` (what several commands take), `groups` (options that belong together), `options` (texts
to what the library takes), `progress` (a bar while loading), `render` (answers as table, JSON, CSV
or Arrow), `exits` (errors to messages and exit codes).
"""

from __future__ import annotations


def main() -> None:
    """Run the command line with the arguments of the process, and leave with its exit code."""
    # Imported here, so that whoever imports the package for its API does not pay for terminals.
    from condgraph.cli.app import run

    run()


__all__ = ["main"]
