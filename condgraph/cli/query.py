"""Commands that run programs, patterns and queries: query, explain, match, logic, sparql, cypher."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from condgraph.cli import arguments, render
from condgraph.cli.exits import Exit, complain, guard
from condgraph.engine.delimited import csv_line
from condgraph.engine.facts import Entity
from condgraph.languages.logic.structures import STRUCTURES
from condgraph.logic.answers import LogicAnswers
from condgraph.names.words import OnUnknown
from condgraph.patterns.matches import Matches
from condgraph.patterns.result import Solution
from condgraph.prepared import explained, run
from condgraph.query_options import QueryOptions

# -- query and explain -------------------------------------------------------------------------------


#: What answers on a local graph.
EngineName = Literal["snapshot", "sparql"]


@dataclass(frozen=True, slots=True)
class TimeOptions:
    """Options for the times of the statements that count."""

    at: str | None = None
    between: tuple[str, str] | None = None
    certain: bool = False

    def of_time(self) -> dict[str, Any]:
        """Return the options for methods of `Graph`."""
        return {item.name: getattr(self, item.name) for item in fields(TimeOptions)}


@dataclass(frozen=True, slots=True)
class ViewOptions(TimeOptions):
    """Options that select which statements count."""

    as_of: str | None = None
    prefer: arguments.PreferOption = None

    def given(self) -> dict[str, Any]:
        """Return the options for `Graph.query` and `Graph.match`."""
        given = {item.name: getattr(self, item.name) for item in fields(ViewOptions)}
        return given | {"prefer": arguments.preference(self.prefer)}


@dataclass(frozen=True, slots=True)
class ProgramOptions:
    """Options for how a program is read."""

    language: arguments.LanguageOption = None
    table: arguments.TableOption = None
    param: arguments.ParamOption = None
    also: arguments.AlsoOption = None

    def options(self, view: ViewOptions, **further: Any) -> QueryOptions:
        """Combine these and further options to the options of a query."""
        return QueryOptions(
            self.language, table=self.table, parameters=arguments.parameters(self.param or []), **view.given(), **further
        )  # fmt: skip


@arguments.grouped
def query(
    *,
    store: arguments.StoreOption,
    text: arguments.TextArgument = None,
    file: arguments.FileOption = None,
    reading: ProgramOptions,
    view: ViewOptions,
    login: arguments.LoginOptions,
    engine: EngineName | None = None,
    form: Annotated[render.Format, typer.Option("--format", help="Format of the answer.")] = "table",
    evidence: Annotated[bool, typer.Option("--evidence", help="Show the facts that the answer rests on.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Check that the program gives the same answer on the evidence alone.")
    ] = False,
    trace: Annotated[bool, typer.Option("--trace", help="Show every step with its number of results.")] = False,
    show: Annotated[
        bool, typer.Option("--show", help="Show the plan, or on a server the compiled query, without running it.")
    ] = False,
    timeout: arguments.TimeoutOption = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", min=1, help="Maximum answers.")] = None,
    on_unknown: OnUnknown = "error",
) -> None:
    """Run a program on a graph, and show its answer."""
    with guard():
        program = arguments.program_text(text, file)
        engine_options = {"engine": engine, "on_unknown": on_unknown}
        options = reading.options(view, timeout=timeout, limit=limit, **engine_options)
    with guard(program), arguments.opened(store, login, timeout=timeout, also=reading.also) as at:
        if show:
            typer.echo(explained(at, program, options))
            return
        answer = run(at, program, options)
        checked = answer.check(full=True, timeout=timeout) if check else None
        if isinstance(answer, Matches):
            write_matches(answer, form, evidence=evidence, trace=trace)
        else:
            render.write_answer(answer, form, evidence=evidence, trace=trace, checked=checked)
        if checked is not None:
            if form != "json" or isinstance(answer, Matches):
                render.write_check(checked, form)
            if not checked:
                raise typer.Exit(Exit.ERROR)
        if answer.doubtful:
            complain("doubtful: the answer rests on a name that was read as another one")
            raise typer.Exit(Exit.UNSURE)


@arguments.grouped
def explain(
    *,
    store: arguments.StoreOption,
    text: arguments.TextArgument = None,
    file: arguments.FileOption = None,
    reading: ProgramOptions,
    view: ViewOptions,
    login: arguments.LoginOptions,
) -> None:
    """Show the plan of a program, or on a server the compiled query, without running it."""
    with guard():
        program = arguments.program_text(text, file)
        options = reading.options(view)
    with guard(program), arguments.opened(store, login, also=reading.also) as at:
        typer.echo(explained(at, program, options))


# -- match -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Options for the search for subgraphs."""

    k: Annotated[int, typer.Option("-k", metavar="N", min=1, help="Number of subgraphs, or of answers with --group-by.")] = 3
    best: Annotated[bool, typer.Option("--best", help="All subgraphs at the best distance, instead of -k.")] = False
    group_by: list[str] | None = None
    distinct_from: Annotated[
        list[str] | None,
        typer.Option(
            "--distinct-from", metavar="[NODE=]NAME", help="Excluded matches of unknown nodes, or of one node; may be repeated."
        ),
    ] = None
    injective: bool = False
    free: bool = False
    induced: bool = False
    directed: Annotated[
        bool | None,
        typer.Option(
            "--directed/--undirected",
            help="Edges run as written, or in either direction; by default, the opposite direction costs 0.05.",
        ),
    ] = None
    k_nodes: int | None = None
    k_relations: int | None = None
    k_types: int | None = None
    fast: bool = False
    stretch: bool = False
    leave_out: bool = False
    encoder: Annotated[
        str | None, typer.Option("--encoder", metavar="ENCODER", help="Encoder for texts; the graph's index by default.")
    ] = None

    def of_match(self) -> dict[str, Any]:
        """Return the options for `Graph.match`."""
        given = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "best"}
        return given | {
            "k": None if self.best else self.k,
            "distinct_from": _by_node(self.distinct_from),
        }


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """Options for how the subgraphs are written."""

    form: Annotated[render.Format, typer.Option("--format", help="Format of the subgraphs.")] = "table"
    prompt: Annotated[bool, typer.Option("--prompt", help="Write the triples as in the prompt of a language model.")] = False
    evidence: Annotated[bool, typer.Option("--evidence", help="Show the facts with their sources.")] = False
    trace: Annotated[bool, typer.Option("--trace", help="Show every term of the distances.")] = False


@arguments.grouped
def match(
    *,
    store: arguments.StoreOption,
    text: arguments.TextArgument = None,
    file: arguments.FileOption = None,
    search: SearchOptions,
    view: ViewOptions,
    login: arguments.LoginOptions,
    output: OutputOptions,
    timeout: arguments.TimeoutOption = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", min=1, help="Maximum subgraphs to show.")] = None,
) -> None:
    """Find the subgraphs that are most similar to a pattern, like ("UNKNOWN film 1", "directed by",
    "Clint Eastwood").
    """
    with guard():
        program, counting = arguments.program_text(text, file), view.given()
    with guard(program), arguments.opened(store, login, timeout=timeout) as at:
        matches = at.match(program, **search.of_match(), **counting, timeout=timeout, limit=limit)
        if output.prompt:
            for warning in matches.warnings:
                typer.echo(f"warning: {render.printable(warning)}", err=True)
            typer.echo(matches.verbalised())
        else:
            write_matches(matches, output.form, evidence=output.evidence, trace=output.trace)
        if not matches.complete:
            raise typer.Exit(Exit.DEADLINE)


def _by_node(given: list[str] | None) -> Any:
    """Group `NODE=NAME` by node. Names alone apply to all unknown nodes."""
    if not given:
        return None
    pairs = [item.partition("=") for item in given]
    if all(mark for _, mark, _ in pairs):
        nodes: dict[str, list[str]] = {}
        for node, _, name in pairs:
            nodes.setdefault(node, []).append(name)
        return nodes
    if any(mark for _, mark, _ in pairs):
        raise typer.BadParameter("either every one is NODE=NAME, or none", param_hint="--distinct-from")
    return given


def write_matches(matches: Matches, form: render.Format, *, evidence: bool = False, trace: bool = False) -> None:
    """Write subgraphs to standard output, and warnings to standard error."""
    render.refuse_terminal(form)
    for warning in matches.warnings:
        typer.echo(f"warning: {render.printable(warning)}", err=True)
    if form == "json":
        solutions = [_document(item) for item in matches.shown]
        document = {
            "pattern": str(matches.pattern),
            "answers": matches.texts,
            "exact": matches.exact,
            "encoder": matches.encoder,
            "solutions": solutions,
            "warnings": matches.warnings,
        }
        typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
        return
    if form == "arrow":
        render.write_stream(matches.to_arrow())
        return
    columns, rows = _rows(matches, ids=form == "csv")
    if form == "csv":
        sys.stdout.writelines(map(csv_line, (columns, *rows)))
    elif rows:
        render.write_table(columns, rows)
    aside = form != "table"
    if trace:
        typer.echo("\ntrace:", err=aside)
        for line in matches.explain().splitlines()[2:]:
            if not line.startswith("warning: "):
                typer.echo(render.printable(line), err=aside)
    if evidence:
        typer.echo("\nevidence:", err=aside)
        for fact in matches.evidence:
            typer.echo("  " + render.printable(str(fact)), err=aside)


def _rows(found: Matches, *, ids: bool) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return subgraphs as rows: the distance, the values of unknown nodes, the triples, and entity ids.

    With `ids` there are ids for all unknown nodes, otherwise only for those where several entities have
    the same name.
    """
    unknown = [[match for match in item.nodes if not match.node.known] for item in found.shown]
    names = [node.name for node in found.pattern.nodes if not node.known]
    rows = [
        (f"{solution.distance:.6f}", *(match.text for match in nodes), "; ".join(" | ".join(triple) for triple in solution.triples))
        for solution, nodes in zip(found.shown, unknown, strict=True)
    ]
    ambiguous = [index for index in range(len(names)) if ids or _homonyms([nodes[index].value for nodes in unknown])]
    columns = ("distance", *names, "subgraph", *(f"{names[index]} id" for index in ambiguous))
    return columns, [(*row, *(_id(nodes[index].value) for index in ambiguous)) for row, nodes in zip(rows, unknown, strict=True)]


def _homonyms(values: Sequence[Any]) -> bool:
    """Return whether several entities have the same name."""
    entities = {value.id: value.name for value in values if isinstance(value, Entity)}
    return len(set(entities.values())) < len(entities)


def _id(value: Any) -> str:
    return value.id if isinstance(value, Entity) else ""


def _document(solution: Solution) -> dict[str, Any]:
    """Return a solution as JSON, with every term of its distance."""
    nodes = [
        {"node": node.node.text, "is": render.json_value(node.value), "distance": _term(node.term)} for node in solution.nodes
    ]  # fmt: skip
    edges = [
        {
            "edge": [edge.edge.head, edge.edge.relation, edge.edge.tail],
            "is": list(edge.triple),
            "reversed": edge.reversed,
            "distance": _term(edge.term),
            **({"against": _term(edge.against)} if edge.against else {}),
            **({"stretch": _term(edge.stretch), "path": [list(triple) for triple in edge.triples]} if edge.stretch else {}),
            "qualifiers": [[key, render.json_value(value)] for key, value in edge.statement.qualifiers],
            "sources": [{"source": source.name, "row": row or None} for source, row in edge.statement.sources],
        }
        for edge in solution.edges
    ]
    return {"distance": solution.distance, "nodes": nodes, "edges": edges}


def _term(term: int | None) -> float | None:
    return None if term is None else term / 1_000_000


# -- logic -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """Options for which answers are given, and by which model."""

    k: Annotated[int, typer.Option("-k", metavar="N", min=1, help="Number of answers.")] = 10
    every: Annotated[bool, typer.Option("--all", help="All answers, instead of -k.")] = False
    structure: Annotated[
        str | None,
        typer.Option("--structure", metavar="NAME", help=f"{', '.join(STRUCTURES)}: TEXT contains its branches, as JSON."),
    ] = None
    model: Annotated[
        Path | None,
        typer.Option(
            "--model", metavar="FILE", exists=True, help="A link prediction model, which adds answers by predicted edges."
        ),
    ] = None
    alpha: Annotated[float, typer.Option("--alpha", metavar="NUMBER", min=0.0, help="Scale of negated scores.")] = 1.0
    epsilon: Annotated[
        float | None,
        typer.Option("--epsilon", metavar="SCORE", min=0.0, help="Minimum score of a predicted edge; 0.001 by default."),
    ] = None


@arguments.grouped
def logic(
    *,
    store: arguments.StoreOption,
    text: arguments.TextArgument = None,
    file: arguments.FileOption = None,
    wanted: AnswerOptions,
    login: arguments.LoginOptions,
    when: TimeOptions,
    form: Annotated[render.Format, typer.Option("--format", help="Format of the answers.")] = "table",
    explain: Annotated[bool, typer.Option("--explain", help="Show the explanation of each answer.")] = False,
    timeout: arguments.TimeoutOption = None,
) -> None:
    """Answer a logical query, like ?x : exists ?v. capital(?x, ?v) and not country(?v, "France")."""
    with guard():
        program = arguments.program_text(text, file)
    with guard(program), arguments.opened(store, login, timeout=timeout) as at:
        query, branches = (program, ()) if wanted.structure is None else (wanted.structure, _branches(program))
        answers = at.logic(
            query,
            *branches,
            **when.of_time(),
            model=wanted.model,
            k=None if wanted.every else wanted.k,
            alpha=wanted.alpha,
            epsilon=wanted.epsilon,
            explain=explain or form == "json",
            timeout=timeout,
        )
        write_answers(answers, form, explain=explain)


def _branches(text: str) -> list[object]:
    try:
        result = json.loads(text)
    except (ValueError, RecursionError):
        result = None
    if not isinstance(result, list):
        raise typer.BadParameter('branches are a JSON list, such as [["A", "r"], ["B", "s"]]', param_hint="--structure")
    return result


def write_answers(answers: LogicAnswers, form: render.Format, *, explain: bool = False) -> None:
    """Write answers to standard output, and warnings to standard error."""
    render.refuse_terminal(form)
    for warning in answers.warnings:
        typer.echo(f"warning: {render.printable(warning)}", err=True)
    if form == "json":
        document = {"query": answers.query, "answers": answers.data(), "more": answers.more, "warnings": answers.warnings}
        typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
        return
    if form == "arrow":
        render.write_stream(answers.to_arrow())
        return
    columns: tuple[str, ...] = ("answer", "score", "known by", "id")
    rows: list[tuple[str, ...]] = [
        (item.entity.name, f"{item.score:.9g}", "observed" if item.observed else "predicted", item.entity.id) for item in answers
    ]
    if form == "csv":
        sys.stdout.writelines(map(csv_line, (columns, *rows)))
    elif rows:
        # Ids distinguish repeated names.
        width = len(columns) if len({row[0] for row in rows}) < len(rows) else -1
        render.write_table(columns[:width], [row[:width] for row in rows])
    if explain:
        typer.echo("", err=form != "table")
        for item in answers:
            for line in item.explain().splitlines():
                typer.echo(render.printable(line), err=form != "table")


# -- sparql and cypher -------------------------------------------------------------------------------


FormOption = Annotated[render.Format, typer.Option("--format", help="Format of the rows.")]


#: How a SPARQL query is read.
Dialect = Literal["standard", "kqapro"]


@arguments.grouped
def sparql(
    *,
    store: arguments.StoreOption,
    text: arguments.TextArgument = None,
    file: arguments.FileOption = None,
    dialect: Annotated[Dialect, typer.Option("--dialect", help="SPARQL 1.1, or the form that KQA Pro published.")] = "standard",
    login: arguments.LoginOptions,
    form: FormOption = "table",
    timeout: arguments.TimeoutOption = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", min=1, help="Maximum rows.")] = None,
) -> None:
    """Run a SPARQL query, read-only, over the graph as RDF."""
    with guard():
        query = arguments.program_text(text, file)
    with guard(query), arguments.opened(store, login, timeout=timeout) as at:
        render.refuse_terminal(form)
        results = at.sparql(query, dialect=dialect, timeout=timeout, limit=limit)
        for warning in results.warnings:
            typer.echo(f"warning: {render.printable(warning)}", err=True)
        if form == "arrow":
            render.write_stream(results.to_arrow())
            return
        columns = results.columns if results.truth is None else ("truth",)
        rows: list[tuple[Any, ...]] = results.rows if results.truth is None else [(results.truth,)]
        _write(columns, rows, form)


@arguments.grouped
def cypher(
    *,
    store: arguments.StoreOption,
    text: arguments.TextArgument = None,
    file: arguments.FileOption = None,
    login: arguments.LoginOptions,
    form: FormOption = "table",
    timeout: arguments.TimeoutOption = 60.0,
) -> None:
    """Run a Cypher query that only reads. On Neo4j its text and plan are checked first; other graphs
    answer it themselves.
    """
    with guard():
        query = arguments.program_text(text, file)
    with guard(query), arguments.opened(store, login, timeout=timeout) as at:
        from condgraph.remote_neo4j import Neo4jGraph

        if not isinstance(at, Neo4jGraph):
            render.write_answer(at.cypher(query, timeout=timeout), form, evidence=False, trace=False, checked=None)
            return
        if form == "arrow":
            raise typer.BadParameter("rows of Cypher have no fixed types: take json or csv", param_hint="--format")
        records = at.cypher(query, timeout=timeout)
        columns = tuple(records[0]) if records else ()
        _write(columns, [tuple(record.values()) for record in records], form)


def _write(columns: tuple[str, ...], rows: list[tuple[Any, ...]], form: render.Format) -> None:
    if form == "json":
        records = [dict(zip(columns, map(_json, row), strict=True)) for row in rows]
        typer.echo(json.dumps(records, ensure_ascii=False, indent=2, default=str))
        return
    texts = [tuple("" if cell is None else _text(cell) for cell in row) for row in rows]
    if form == "csv":
        sys.stdout.writelines(map(csv_line, (columns, *texts)))
    elif columns:
        render.write_table(columns, texts)


def _json(cell: Any) -> Any:
    return cell if isinstance(cell, dict | list) else render.json_value(cell)


def _text(cell: Any) -> str:
    from condgraph.sparql.text.table import shown

    return json.dumps(cell, ensure_ascii=False, default=str) if isinstance(cell, dict | list) else shown(cell)
