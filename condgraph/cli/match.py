"""The command `condgraph match`, and how subgraphs are written: table, JSON, CSV, Arrow, or for the
prompt of a language model.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any

import typer

from condgraph.cli.arguments import FileOption, LoginOptions, StoreOption, TextArgument, opened
from condgraph.cli.exits import Exit, guard
from condgraph.cli.groups import grouped
from condgraph.cli.options import program_text
from condgraph.cli.render import Format, json_value, printable, refuse_terminal, write_stream, write_table
from condgraph.engine.delimited import csv_line
from condgraph.engine.facts import Entity
from condgraph.patterns.matches import Matches
from condgraph.patterns.result import Solution


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Which subgraphs are looked for."""

    k: Annotated[int, typer.Option("-k", metavar="N", min=1, help="How many subgraphs, or answers with --group-by.")] = 3
    best: Annotated[bool, typer.Option("--best", help="All at the best distance, instead of -k.")] = False
    group_by: Annotated[
        list[str] | None, typer.Option("--group-by", metavar="NODE", help="Give each value of this node once; may be repeated.")
    ] = None
    distinct_from: Annotated[
        list[str] | None,
        typer.Option(
            "--distinct-from", metavar="[NODE=]NAME", help="What unknown nodes, or this one, are not to be; may be repeated."
        ),
    ] = None
    injective: Annotated[bool, typer.Option("--injective", help="Different nodes are different entities.")] = False
    free: Annotated[bool, typer.Option("--free", help="A statement may be used for several edges.")] = False
    induced: Annotated[
        bool,
        typer.Option("--induced", help="No further edges between the nodes; with --directed none against the pattern's either."),
    ] = False
    directed: Annotated[
        bool | None,
        typer.Option("--directed/--undirected", help="Edges run as they are written, or either way; else that costs 0.05."),
    ] = None
    k_nodes: Annotated[int | None, typer.Option("--k-nodes", metavar="N", min=1, help="Candidates of a known node.")] = None
    k_relations: Annotated[
        int | None, typer.Option("--k-relations", metavar="N", min=1, help="Candidates of a known relation.")
    ] = None
    k_types: Annotated[int | None, typer.Option("--k-types", metavar="N", min=1, help="Types that fit a hint.")] = None
    fast: Annotated[bool, typer.Option("--fast", help="The paper's numbers of candidates: approximate.")] = False
    stretch: Annotated[bool, typer.Option("--stretch", help="An edge may stand for a path of two; that costs 0.25.")] = False
    leave_out: Annotated[
        bool, typer.Option("--leave-out", help="Where nothing is near, a named edge may be left out; that costs 1.")
    ] = False
    encoder: Annotated[
        str | None, typer.Option("--encoder", metavar="ENCODER", help="How texts become vectors; the graph's index by default.")
    ] = None

    def of_match(self) -> dict[str, Any]:
        """These as options of `Graph.match`."""
        given = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "best"}
        return given | {
            "k": None if self.best else self.k,
            "distinct_from": _by_node(self.distinct_from),
        }


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """How the subgraphs are written."""

    form: Annotated[Format, typer.Option("--format", help="How the subgraphs are written.")] = Format.TABLE
    prompt: Annotated[bool, typer.Option("--prompt", help="Write the triples as a language model is shown them.")] = False
    evidence: Annotated[bool, typer.Option("--evidence", help="Show the facts with their sources.")] = False
    trace: Annotated[bool, typer.Option("--trace", help="Show every term of the distances.")] = False


@grouped
def match(
    *,
    store: StoreOption,
    text: TextArgument = None,
    file: FileOption = None,
    search: SearchOptions,
    login: LoginOptions,
    output: OutputOptions,
    timeout: Annotated[float | None, typer.Option("--timeout", metavar="SECONDS", min=0.0, help="The deadline.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", min=1, help="The most subgraphs shown.")] = None,
) -> None:
    """Find the subgraphs that are most similar to a pattern, like ("UNKNOWN film 1", "directed by",
    "Clint Eastwood").
    """
    with guard():
        program = program_text(text, file)
    with guard(program), opened(store, login) as at:
        found = at.match(program, **search.of_match(), timeout=timeout, limit=limit)
        if output.prompt:
            for warning in found.warnings:
                typer.echo(f"warning: {printable(warning)}", err=True)
            typer.echo(found.verbalised())
        else:
            write_matches(found, output.form, evidence=output.evidence, trace=output.trace)
        if not found.complete:
            raise typer.Exit(Exit.DEADLINE)


def _by_node(given: list[str] | None) -> Any:
    """`NODE=NAME` by node; names alone are for all unknown nodes."""
    if not given:
        return None
    pairs = [one.partition("=") for one in given]
    if all(mark for _, mark, _ in pairs):
        nodes: dict[str, list[str]] = {}
        for node, _, name in pairs:
            nodes.setdefault(node, []).append(name)
        return nodes
    if any(mark for _, mark, _ in pairs):
        raise typer.BadParameter("either every one is NODE=NAME, or none", param_hint="--distinct-from")
    return given


def write_matches(found: Matches, form: Format, *, evidence: bool = False, trace: bool = False) -> None:
    """Write subgraphs to standard output, and warnings to standard error."""
    refuse_terminal(form)
    for warning in found.warnings:
        typer.echo(f"warning: {printable(warning)}", err=True)
    if form is Format.JSON:
        shown = [_document(one) for one in found.shown]
        document = {
            "pattern": str(found.pattern),
            "answers": found.texts,
            "exact": found.exact,
            "encoder": found.encoder,
            "solutions": shown,
            "warnings": found.warnings,
        }
        typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
        return
    if form is Format.ARROW:
        write_stream(found.to_arrow())
        return
    columns, rows = _rows(found, ids=form is Format.CSV)
    if form is Format.CSV:
        sys.stdout.writelines(map(csv_line, (columns, *rows)))
    elif rows:
        write_table(columns, rows)
    beside = form is not Format.TABLE
    if trace:
        typer.echo("\ntrace:", err=beside)
        for line in found.explain().splitlines()[2:]:
            if not line.startswith("warning: "):
                typer.echo(printable(line), err=beside)
    if evidence:
        typer.echo("\nevidence:", err=beside)
        for fact in found.evidence:
            typer.echo("  " + printable(str(fact)), err=beside)


def _rows(found: Matches, *, ids: bool) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Subgraphs as rows: the distance, what unknown nodes are, the triples, and at the end the ids of
    entities: of all unknown nodes, or without `ids` of those where entities of one name are several.
    """
    shown = [[match for match in one.nodes if not match.node.known] for one in found.shown]
    names = [node.name for node in found.pattern.nodes if not node.known]
    rows = [
        (f"{one.distance:.6f}", *(match.text for match in nodes), "; ".join(" | ".join(triple) for triple in one.triples))
        for one, nodes in zip(found.shown, shown, strict=True)
    ]
    told = [at for at in range(len(names)) if ids or _homonyms([nodes[at].value for nodes in shown])]
    columns = ("distance", *names, "subgraph", *(f"{names[at]} id" for at in told))
    return columns, [(*row, *(_id(nodes[at].value) for at in told)) for row, nodes in zip(rows, shown, strict=True)]


def _homonyms(values: Sequence[Any]) -> bool:
    """Whether several entities have one name."""
    entities = {value.id: value.name for value in values if isinstance(value, Entity)}
    return len(set(entities.values())) < len(entities)


def _id(value: Any) -> str:
    return value.id if isinstance(value, Entity) else ""


def _document(solution: Solution) -> dict[str, Any]:
    """A solution with every term of its distance."""
    nodes = [
        {"node": one.node.text, "is": json_value(one.value), "distance": _term(one.term)} for one in solution.nodes
    ]  # fmt: skip
    edges = [
        {
            "edge": [one.edge.head, one.edge.relation, one.edge.tail],
            "is": list(one.triple),
            "reversed": one.reversed,
            "distance": _term(one.term),
            **({"against": _term(one.against)} if one.against else {}),
            **({"stretch": _term(one.stretch), "path": [list(triple) for triple in one.triples]} if one.stretch else {}),
            "qualifiers": [[key, json_value(value)] for key, value in one.statement.qualifiers],
            "sources": [{"source": source.name, "row": row or None} for source, row in one.statement.sources],
        }
        for one in solution.edges
    ]
    return {"distance": solution.distance, "nodes": nodes, "edges": edges}


def _term(term: int | None) -> float | None:
    return None if term is None else term / 1_000_000
