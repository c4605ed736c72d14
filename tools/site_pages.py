"""Prepares the pages for `mkdocs build` (a hook of mkdocs.yml).

Links are written for GitHub, relative to the repository. Links to pages of the site are kept, links to code and
notebooks lead to the repository, and a link to a missing file fails the build. README.md and the other pages at the
root become pages of the site, and the docstrings of the public API become the page `reference/api-python.md`.
"""

from __future__ import annotations

import inspect
import logging
import re
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parent.parent
#: Pages at the root of the repository.
AT_ROOT: Final = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
API: Final = "reference/api-python.md"
_LINK: Final = re.compile(r"(?P<code>```.*?```|`[^`\n]*`)|(?P<text>\]\()(?P<target>[^)\s#]+)(?P<rest>#[^)\s]*)?\)", re.DOTALL)
#: Warnings of this logger fail a strict build.
_log: Final = logging.getLogger("mkdocs.hooks.site_pages")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in the documentation folder."""
    for name in AT_ROOT:
        files.append(File.generated(config, _site_name(name), content=(ROOT / name).read_text("utf-8")))
    files.append(File.generated(config, API, content=api_page()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page with the links of the site."""
    here = page.file.src_uri
    if here == API:
        return markdown
    at_root = {_site_name(name): name for name in AT_ROOT}
    return rewritten(markdown, at_root.get(here, f"docs/{here}"), str(config.repo_url))


def rewritten(markdown: str, place: str, repository: str) -> str:
    """Return the text of a page, given its path in the repository, with the links of the site."""

    def replace_link(found: re.Match[str]) -> str:
        target = found["target"]
        if found["code"] or target.startswith("<") or re.match(r"[a-z]+:", target):
            return found[0]
        path = normpath(join(dirname(place), target))
        if not (ROOT / path).exists():
            _log.warning("%s links to %s, which is not there", place, target)
            return found[0]
        fragment = found["rest"] or ""
        if path in AT_ROOT or (path.startswith("docs/") and not path.endswith((".ipynb", ".py")) and (ROOT / path).is_file()):
            site_link = relpath(_site_name(path), dirname(_site_name(place)) or ".")
            return f"]({site_link}{fragment})"
        return f"]({repository}/{'tree' if (ROOT / path).is_dir() else 'blob'}/main/{path}{fragment})"

    return _LINK.sub(replace_link, markdown)


def _site_name(path: str) -> str:
    """Return the path on the site of a page in the repository."""
    return "about.md" if path == "README.md" else path.removeprefix("docs/") if path.startswith("docs/") else path.lower()


# -- the reference of the API ----------------------------------------------------------------------


def api_page() -> str:
    """Return the page of the public API, from its signatures and docstrings."""
    import condgraph

    lines = ["# API", "", "Everything public, from its docstrings. [Python](python.md) has the calls in short."]
    for name in sorted(condgraph.__all__, key=str.lower):
        item = getattr(condgraph, name)
        lines += ["", f"## `{name}`", "", *_described(item, name)]
        # The asyncio API has the same methods, as coroutines.
        if inspect.isclass(item) and item is not condgraph.AsyncGraph:
            for member in sorted(_members(item)):
                attribute = inspect.getattr_static(item, member)
                lines += ["", f"### `{name}.{member}`", "", *_described(attribute, member, not isinstance(attribute, staticmethod))]
    return "\n".join(lines) + "\n"


def _members(thing: type) -> list[str]:
    """Return the public methods and properties of a class that have a docstring."""
    names = {name for kind in thing.__mro__ if kind.__module__.startswith("condgraph") for name in vars(kind)}
    attributes = {name: inspect.getattr_static(thing, name) for name in names if not name.startswith("_")}
    return [
        name
        for name, attribute in attributes.items()
        if hasattr(attribute, "__get__") and not isinstance(attribute, type) and inspect.getdoc(attribute)
    ]


def _described(thing: Any, name: str, method: int = 0) -> list[str]:
    call = getattr(thing, "__func__", thing)
    if not callable(call):
        return [inspect.getdoc(thing) or "" if hasattr(thing, "__get__") else f"`{thing!r}`"]
    try:
        signature = inspect.signature(call)
    except ValueError:
        return [inspect.getdoc(thing) or ""]
    public = list(signature.parameters.values())[method:]
    parameters = [
        parameter if parameter.annotation is parameter.empty else parameter.replace(annotation=_Bare(parameter.annotation))
        for parameter in public
    ]
    text = f"{name}{signature.replace(parameters=parameters, return_annotation=_Bare(signature.return_annotation))}"
    text = re.sub(r"<object object at \w+>", "...", text)
    if len(text) > 100:
        text = re.sub(r", (?=\*{0,2}\w+: |[*/], )", ",\n    ", text).replace("(", "(\n    ", 1)
    return ["```python", text, "```", "", inspect.getdoc(thing) or ""]


class _Bare:
    """An annotation, printed without quotes."""

    def __init__(self, annotation: Any) -> None:
        self._text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)

    def __repr__(self) -> str:
        return self._text
