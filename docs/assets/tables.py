"""The parts of the pages that are printed from the code: tables of formats, operators, functions,
errors and options.

    python docs/assets/tables.py           write them into the pages
    python docs/assets/tables.py --check   say which pages are out of date, and write nothing

A printed part stands in a page between `<!-- printed: NAME -->` and `<!-- end -->`; NAME is a key
of `TABLES`.
"""

from __future__ import annotations

import argparse
import asyncio
import html
import inspect
import re
import runpy
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from datetime import date
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

from typer.models import OptionInfo

import condgraph
import condgraph.engine.algebra.solutions
from condgraph.engine import algebra, errors
from condgraph.engine.algebra import Node
from condgraph.engine.describe import describe
from condgraph.engine.passes import PASSES
from condgraph.languages.kopl.lower import lower
from condgraph.languages.kopl.table import FUNCTIONS
from condgraph.languages.llm.functions import TABLE as LLM_FUNCTIONS
from condgraph.languages.llm.lower.search import markdown
from condgraph.models.chat import Completion, Completions
from condgraph.samples import FOLDER

DOCS = Path(__file__).parent.parent
_PART = re.compile(r"(?P<begin><!-- printed: (?P<name>[\w-]+) -->\n).*?(?P<end><!-- end -->)", re.DOTALL)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; bars inside cells are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in line) + " |" for line in lines)


def code(text: str) -> str:
    """Text as code."""
    return f"`{text}`"


def first_sentence(thing: Any) -> str:
    """The first sentence of a docstring."""
    text = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
    # The notes on semantics that some docstrings name are these pages.
    return re.split(r"(?<=[^.]\.) (?=[A-Z`])", text)[0]


# -- loaders ---------------------------------------------------------------------------------------


def formats() -> str:
    """Every format with the options it takes."""
    from condgraph.loaders.recognise import FORMATS

    rows = [(code(one.name), one.about, ", ".join(map(code, one.options)) or "none") for one in FORMATS.values()]
    return table(("format", "what it is", "options"), rows)


def options() -> str:
    """What every loader option means, and for which formats."""
    from condgraph.loaders.recognise import FORMATS

    found: dict[tuple[str, str], list[str]] = {}
    for one in FORMATS.values():
        for name, about in one.options.items():
            found.setdefault((name, about), []).append(one.name)
    rows = [(code(name), about, ", ".join(names)) for (name, about), names in sorted(found.items())]
    return table(("option", "means", "formats"), rows)


# -- algebra and KoPL ------------------------------------------------------------------------------


def operators(sort: type[Node]) -> str:
    """The operators of one sort: their fields, and the first sentence about them."""
    return _records(sort, ("operator", "gives"))


def _records(base: type[Any], head: Sequence[str]) -> str:
    rows = []
    modules = (algebra.operators, algebra.grouped, algebra.solutions)
    for one in (one for module in modules for one in vars(module).values() if getattr(one, "__module__", "") == module.__name__):
        if isinstance(one, type) and issubclass(one, base) and one is not base and not one.__name__.startswith("_"):
            names = ", ".join(part.name for part in fields(one))
            rows.append((code(f"{one.__name__}({names})"), first_sentence(one)))
    return table(head, rows)


def tests() -> str:
    """The conditions that operators ask of values."""
    return _records(algebra.Condition, ("condition", "holds where"))


def facets() -> str:
    """What each operator says of itself, but for what is most often so: nothing."""
    rows = []
    modules = (algebra.operators, algebra.grouped, algebra.solutions)
    for one in (one for module in modules for one in vars(module).values() if getattr(one, "__module__", "") == module.__name__):
        if getattr(one, "__name__", "").startswith("_"):
            continue
        if not isinstance(one, type) or not issubclass(one, Node) or not isinstance(getattr(one, "facets", None), algebra.Facets):
            continue
        said = one.facets
        warns = said.warns.when if said.warns.when in ("never", "always") else f"{said.warns.when} {code(said.warns.of)}"
        tests = f"tests {said.tests}" if said.tests != "nothing" else ""
        others = ", ".join(filter(None, ("alters" if said.alters else "", tests, said.total)))
        names = [", ".join(map(code, part)) for part in (said.carries, said.strict)]
        rows.append(
            (
                code(one.__name__),
                *names,
                said.gives,
                *("" if one in ("nothing", "never") else one for one in (said.reads, warns)),
                others,
            )
        )
    return table(("operator", "carries", "strict", "gives", "reads", "warns", "other"), rows)


def passes() -> str:
    """The passes, in order, each by the first sentence of its docstring."""
    rows = [(code(rewrite.__name__), first_sentence(rewrite)) for _, rewrite in PASSES]
    return table(("pass", "does"), rows)


def nested(node: Node) -> str:
    """A plan in one line."""
    name, _, words = describe(node).partition("(")
    parts = [nested(part) for part in node.inputs()]
    return f"{name}({', '.join([*parts, *([words[:-1]] if words[:-1] else [])])})"


#: A program a function, in which x and y are entities, c a concept, p a relation, k an attribute, q
#: a qualifier key.
_PROGRAMS = {
    "FindAll": "FindAll()",
    "Find": "Find(x)",
    "FilterConcept": "Find(x) FilterConcept(c)",
    "FilterStr": "Find(x) FilterStr(k, v)",
    "FilterNum": "Find(x) FilterNum(k, 1, >)",
    "FilterYear": "Find(x) FilterYear(k, 1960, =)",
    "FilterDate": "Find(x) FilterDate(k, 1960-02-01, <)",
    "QFilterStr": "Find(x) Relate(p, forward) QFilterStr(q, v)",
    "QFilterNum": "Find(x) Relate(p, forward) QFilterNum(q, 1, >)",
    "QFilterYear": "Find(x) Relate(p, forward) QFilterYear(q, 1960, =)",
    "QFilterDate": "Find(x) Relate(p, forward) QFilterDate(q, 1960-02-01, <)",
    "Relate": "Find(x) Relate(p, backward)",
    "And": "Find(x) Find(y) And()",
    "Or": "Find(x) Find(y) Or()",
    "Except": "Find(x) Find(y) Except()",
    "QueryName": "Find(x) QueryName()",
    "What": "Find(x) What()",
    "Count": "Find(x) Count()",
    "QueryAttr": "Find(x) QueryAttr(k)",
    "QueryAttrUnderCondition": "Find(x) QueryAttrUnderCondition(k, q, v)",
    "QueryRelation": "Find(x) Find(y) QueryRelation()",
    "SelectBetween": "Find(x) Find(y) SelectBetween(k, greater)",
    "SelectAmong": "Find(x) SelectAmong(k, smallest)",
    "QueryAttrQualifier": "Find(x) QueryAttrQualifier(k, v, q)",
    "QueryRelationQualifier": "Find(x) Find(y) QueryRelationQualifier(p, q)",
    "VerifyStr": "Find(x) QueryAttr(k) VerifyStr(v)",
    "VerifyNum": "Find(x) QueryAttr(k) VerifyNum(1, >)",
    "VerifyYear": "Find(x) QueryAttr(k) VerifyYear(1960, =)",
    "VerifyDate": "Find(x) QueryAttr(k) VerifyDate(1960-02-01, <)",
}


def kopl() -> str:
    """Every KoPL function with its arguments, and the plan of a program that ends with it."""
    graph = condgraph.open()
    graph.add(
        [
            condgraph.Entity("c", "c", condgraph.EntityKind.CONCEPT),
            condgraph.Statement("x", "p", condgraph.Ref("y"), (("q", "v"),)),
            condgraph.Statement("x", "k", "v", (("q", "v"),)),
        ]
    )
    rows = []
    for name, found in FUNCTIONS.items():
        program = _PROGRAMS[name]
        plan = nested(lower(program, graph.current.schema).plan)
        rows.append((code(f"{name}({', '.join(found.texts)})"), str(found.inputs), code(program), code(plan)))
    return table(("function", "takes", "program", "plan"), rows)


# -- errors and the command line -------------------------------------------------------------------


def error_tree() -> str:
    """The exceptions: their codes, and what each says."""

    def below(one: type[errors.CondgraphError], depth: int) -> Iterator[Sequence[str]]:
        other = [base.__name__ for base in one.__bases__ if not issubclass(base, errors.CondgraphError) and base is not Exception]
        about = first_sentence(one) + (f" It is a built-in `{other[0]}`, too." if other else "")
        yield "&nbsp;&nbsp;&nbsp;" * depth + code(one.__name__), code(one.code), about
        for child in one.__subclasses__():
            if child.__module__ == errors.__name__:
                yield from below(child, depth + 1)

    return table(("exception", "code", "is raised for"), list(below(errors.CondgraphError, 0)))


def verbs() -> str:
    """Every verb of the command line with its arguments and options, as its signature declares
    them.
    """
    from condgraph.cli.app import app

    parts = []
    groups = [
        (f"{group.typer_instance.info.name} ", group.typer_instance) for group in app.registered_groups if group.typer_instance
    ]
    for before, command in [(before, command) for before, one in [("", app), *groups] for command in one.registered_commands]:
        verb = command.callback
        assert verb is not None
        called = before + (command.name or verb.__name__.replace("_", "-"))
        arguments, options = [], []
        for name, parameter in inspect.signature(verb, eval_str=True).parameters.items():
            kind, info = get_args(parameter.annotation)[:2]
            read_from = [info.envvar] if isinstance(info.envvar, str) else info.envvar or []
            about = [info.help] + ([f"Environment: {', '.join(map(code, read_from))}."] if read_from else [])
            default = parameter.default
            if isinstance(info, OptionInfo):
                value = "" if kind in (bool, bool | None) else f" {code(info.metavar or _choices(kind))}"
                if default is inspect.Parameter.empty:
                    about.append("Required.")
                elif default not in (None, False):
                    about.append(f"Default: {code(str(default))}.")
                # Within Annotated, the first name lands where the default stands otherwise.
                names = [one for one in (info.default, *(info.param_decls or ())) if isinstance(one, str)]
                options.append((", ".join(map(code, names)) + value, " ".join(about)))
            else:
                metavar = info.metavar or name.upper()
                arguments.append((metavar if default is inspect.Parameter.empty else f"[{metavar}]", " ".join(about)))
        usage = " ".join(["condgraph", called, *(["[OPTIONS]"] if options else []), *(metavar for metavar, _ in arguments)])
        rows = [(code(metavar.strip("[]")), about) for metavar, about in arguments] + options
        parts.append(f"### {called}\n\n{inspect.getdoc(verb)}\n\n    {usage}\n\n{table(('argument', 'means'), rows)}\n")
    return "\n".join(parts).rstrip()


def _choices(kind: Any) -> str:
    """The words that an option takes."""
    return "|".join(word for one in (kind, *get_args(kind)) if get_origin(one) is Literal for word in get_args(one)) or "VALUE"


def empty_answers() -> str:
    """How an empty answer is shown in each place, with what is really written there."""
    from mcp import Client
    from typer.testing import CliRunner

    from condgraph.agents.mcp_server import mcp_server
    from condgraph.agents.toolbox import Toolbox
    from condgraph.cli.app import app
    from condgraph.samples import FOLDER
    from condgraph.studio.calls import query
    from condgraph.studio.spec import Query, read_fields

    program = "FindAll() FilterNum(height, 9000 m, >) QueryName()"

    async def through_mcp(graph: condgraph.Graph) -> str:
        async with Client(mcp_server(Toolbox(graph))) as client:
            reply: Any = await client.call_tool("query", {"program": program})
        return str(reply.content[0].text)

    with tempfile.TemporaryDirectory() as folder, condgraph.open(folder) as graph:
        graph.load(FOLDER / "mountains.csv", key="mountain")
        answer = graph.kopl(program)
        # A browser shows a line for each block.
        notebook = re.sub(r"<[^>]*>", "", answer._repr_html_().replace("</div><div>", "\n"))
        command = CliRunner().invoke(app, ["query", "-d", folder, program])
        fields = {"program": program, "compiled": False, "facts": 0}
        page = [warning["text"] for warning in query(graph, read_fields(fields, Query))["warnings"]]  # type: ignore[index, call-overload]
        asked = graph.ask("Which mountains are above 9000 m?", lambda prompt: program, via="kopl")
        shown = [
            ("`print(answer)`", str(answer)),
            ("`answer` at a prompt", repr(answer)),
            ("`answer` in a notebook", html.unescape(notebook)),
            ("`condgraph query`, on standard error", command.stderr),
            ("The studio, below the program, and `warnings` of the HTTP API", "\n".join(page)),
            ("The tool `query` of the MCP server", asyncio.run(through_mcp(graph))),
            ("`ask`, to the model that wrote the program", asked.attempts[0].feedback),
        ]
    return "\n\n".join(f"{place}:\n\n```text\n{text.strip()}\n```" for place, text in shown)


def api() -> str:
    """The methods of a graph with their arguments."""
    from condgraph.loaders.recognise import FORMATS

    rows = []
    # `load` has the options of all formats, which have a page of their own.
    of_formats = {option for form in FORMATS.values() for option in form.options}
    methods = [one for kind in condgraph.Graph.__mro__[:-1] for one in vars(kind).items()]
    calls: list[tuple[str, Any]] = [("open", condgraph.open), *methods]
    for name, method in calls:
        if name.startswith("_") or not (inspect.isfunction(method) or isinstance(method, property)):
            continue
        if isinstance(method, property):
            rows.append((code(f"Graph.{name}"), first_sentence(method)))
            continue
        parts = [
            f"{part.name}=" if part.default is not part.empty else ("**" if part.kind is part.VAR_KEYWORD else "") + part.name
            for part in list(inspect.signature(method).parameters.values())[name != "open" :]
            if part.name != "unknown" and not (name == "load" and part.name in of_formats)
        ]
        if name == "load":
            parts.append("...")
        owner = "condgraph" if name == "open" else "Graph"
        rows.append((code(f"{owner}.{name}({', '.join(parts)})"), first_sentence(method)))
    return table(("call", "does"), rows)


def exit_codes() -> str:
    """The exit codes of the command line."""
    from condgraph.cli.exits import EXIT_CODES

    parts = EXIT_CODES.removeprefix("Exit codes: ").rstrip(".").split("; ")
    return table(("exit code", "says"), [part.split(" ", 1) for part in parts])


#: Questions with the language of their programs, whose prompts a page shows.
PROMPTS: Final = (
    ("What is the capital of Nepal?", "kopl"),
    ("When was Indira Gandhi born?", "kopl"),
    ("How many countries are in Asia?", "kopl"),
    ("How high is Annapurna I?", "query"),
    ("Which 3 highest mountains has each country?", "query"),
    ("who was head of goverment of india in 1984?", "query"),
    ("Which mountain in Nepal was climbed first?", "cypher"),
    ("Which universities are located in the United Kingdom?", "pattern"),
    ("How long has Manmohan Singh been head of government by now?", "query"),
    ("And its continent?", "kopl"),
)


class Sent:
    """A model that takes what a server with OpenAI's API takes, and notes what it is sent."""

    name, accepts = "sent", frozenset(("json-schema", "stop"))

    def __init__(self) -> None:
        self.messages: list[Any] = []

    def chat(self, messages: Any, **options: Any) -> Completions:
        """A program, whatever is asked."""
        self.messages.append(messages)
        return Completions((Completion("Find(Nepal) Relate(capital, forward) QueryName()"),))

    def count(self, text: str) -> int | None:
        """It has no tokenizer."""
        return None


def prompts() -> str:
    """The messages that a model is sent for questions over the samples; the last follows the first as in a
    conversation.
    """
    graph = condgraph.open()
    graph.load(FOLDER / "mountains.csv", key="mountain", refs=["country"])
    graph.load(FOLDER / "countries.json")
    graph.load(FOLDER / "governments.tsv")
    parts = []
    before: tuple[Any, ...] = ()
    for number, (question, via) in enumerate(PROMPTS, start=1):
        model = Sent()
        options: dict[str, Any] = {"before": before[:1]} if number == len(PROMPTS) else {}
        outcome = graph.ask(
            question,
            model,
            via=via,
            retries=0,
            demos=2,
            excerpt_tokens=400,
            today=date(2026, 1, 31),
            **options,  # type: ignore[arg-type]
        )
        before = (*before, outcome)
        texts = [f"[{message['role']}]\n{message['content']}" for message in model.messages[0]]
        parts.append(f"## {number}. {question}\n\n`via={via!r}`\n\n```text\n" + "\n\n".join(texts) + "\n```\n")
    return "\n".join(parts)


#: What can be printed, by the name that a page gives.
def llm_functions() -> str:
    """The native functions of LLM queries, with the names each goes by."""
    rows = [(code(one.name), one.about, ", ".join(map(code, one.synonyms)) or "none") for one in LLM_FUNCTIONS[1:]]
    return table(("function", "gives", "also written"), rows)


# -- the endpoint ----------------------------------------------------------------------------------


def w3c() -> str:
    """The W3C's tests that are not passed, by defect."""
    known: dict[str, Any] = runpy.run_path(str(DOCS.parent / "tests" / "w3c" / "known.py"))
    tests: dict[str, list[str]] = {}
    for name, defect in known["KNOWN"].items():
        tests.setdefault(defect, []).append(code(name))
    return table(("defect", "tests"), [(defect[0].upper() + defect[1:], ", ".join(names)) for defect, names in tests.items()])


TABLES: dict[str, Callable[[], str]] = {
    "formats": formats,
    "options": options,
    "entities": lambda: operators(algebra.Entities),
    "facts": lambda: operators(algebra.Facts),
    "values": lambda: operators(algebra.Values),
    "scalars": lambda: operators(algebra.Scalar),
    "groups": lambda: operators(algebra.Table),
    "solutions": lambda: operators(algebra.Solutions),
    "tests": tests,
    "facets": facets,
    "passes": passes,
    "kopl": kopl,
    "llm-cases": lambda: markdown().rstrip(),
    "llm-functions": llm_functions,
    "errors": error_tree,
    "verbs": verbs,
    "exit-codes": exit_codes,
    "api": api,
    "empty-answers": empty_answers,
    "w3c": w3c,
    "prompts": prompts,
}


def parts_of(text: str) -> list[str]:
    """The names of the printed parts of a page."""
    return [found["name"] for found in _PART.finditer(text)]


def pages() -> Iterator[tuple[Path, str, str]]:
    """Every page that has printed parts: its path, its text, and its text with these parts printed
    anew.
    """
    for path in sorted(DOCS.glob("**/*.md")):
        text = path.read_text(encoding="utf-8")
        if _PART.search(text):
            yield path, text, _PART.sub(lambda found: f"{found['begin']}\n{TABLES[found['name']]()}\n\n{found['end']}", text)


def main() -> int:
    """Write the printed parts, or with --check say where they are out of date."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    arguments.add_argument("--check", action="store_true", help="write nothing; exit with 1 where a page is out of date")
    given = arguments.parse_args()
    stale = 0
    for path, text, fresh in pages():
        if text != fresh:
            stale += 1
            sys.stdout.write(f"{path.relative_to(DOCS.parent)}: {'out of date' if given.check else 'written'}\n")
            if not given.check:
                path.write_text(fresh, encoding="utf-8")
    return 1 if given.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
