"""A claim in plain words, read by a language model as triples (SimGRAG, section 4.1 and Table 17),
and read again where names in it are not the graph's.

The model reads and decides nothing. The prompt is a file with a version (`prompts/`), which a file
of the user's own may take the place of.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, Final

from condgraph.claims.claim import MOST_TRIPLES, Claim
from condgraph.claims.verify import Facts, reversed_notes, unknown
from condgraph.engine.bounds import check, left
from condgraph.engine.errors import CondgraphError, ModelError, OptionError, shortened
from condgraph.models.chat import Message, Usage, spoken
from condgraph.overview.schema import unmarked

if TYPE_CHECKING:
    from condgraph.models.chat import ChatModel
    from condgraph.overview.schema import GraphSchema

#: The prompt of this version.
PROMPT: Final = "read-claim.1.txt"
#: Characters of the block of names: about a thousand tokens.
MOST_NAMES: Final = 4_000
#: Characters of a name that are shown, and of a claim that is read.
LONGEST_SHOWN: Final = 120
LONGEST_CLAIM: Final = 4_000
MOST_TOKENS: Final = 800
#: What the model has to write.
SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "triples": {
            "type": "array",
            "minItems": 1,
            "maxItems": MOST_TRIPLES,
            "items": {
                "type": "object",
                "properties": {
                    "head": {"type": "string"},
                    "relation": {"type": "string"},
                    "tail": {"type": "string"},
                    "negated": {"type": "boolean"},
                },
                "required": ["head", "relation", "tail", "negated"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["triples"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Read:
    """A claim as a model read it: after how many attempts, and what they cost."""

    claim: Claim
    attempts: int
    usage: Usage
    model: str


def read_claim(
    text: str,
    model: ChatModel,
    schema: GraphSchema,
    facts: Facts,
    *,
    retries: int = 1,
    seed: int | None = 0,
    prompt: str | os.PathLike[str] | None = None,
) -> Read:
    """Have a model read a claim; raises `ModelError` if its text cannot be read.

    Errors in its text, and names that the graph does not have, are sent back to it at most
    `retries` times; the last reading counts.
    """
    if not text.strip():
        raise OptionError("the claim is empty")
    if len(text) > LONGEST_CLAIM:
        raise OptionError(f"the claim has {len(text):,} characters, and at most {LONGEST_CLAIM:,} are read")
    messages: list[Message] = [{"role": "user", "content": prompt_for(text, schema, prompt)}]
    usage, claim, wrong = Usage(0, 0), None, ""
    attempts = 0
    while attempts <= retries:
        attempts += 1
        check()
        accepts = "json-schema" in model.accepts
        completions = model.chat(
            messages, schema=SCHEMA if accepts else None, max_tokens=MOST_TOKENS, temperature=0.0, seed=seed, timeout=left()
        )
        usage += completions.usage
        if not completions:
            raise ModelError(f"{model.name} gave no completion")
        written = completions[0]
        if written.finish == "refusal":
            raise ModelError(f"{model.name} did not read the claim: {shortened(written.text, 200)}")
        try:
            claim = Claim.of(_json(spoken(written.text)), text)
            problems = [*unknown(claim, facts), *reversed_notes(claim, facts)]
            wrong = "; ".join(problem for problem in problems if problem.startswith("the graph "))
        except CondgraphError as error:
            claim, wrong = None, str(error)
        if not wrong:
            break
        messages += [{"role": "assistant", "content": written.text}, {"role": "user", "content": _again(wrong)}]
    if claim is None:
        raise ModelError(f"{model.name} wrote no claim in {attempts} attempts: {wrong}", hint="give the claim as triples")
    return Read(claim, attempts, usage, model.name)


def prompt_for(text: str, schema: GraphSchema, prompt: str | os.PathLike[str] | None = None) -> str:
    """The prompt for a claim: first the predicates that share words with it, then the most frequent
    ones.
    """
    own = resources.files("condgraph.claims") / "prompts" / PROMPT
    template = own.read_text("utf-8") if prompt is None else Path(prompt).read_text("utf-8")
    words = set(re.findall(r"\w{3,}", text.casefold()))
    ordered = sorted(schema.predicates, key=lambda item: -len(words & set(re.findall(r"\w{3,}", item.name.casefold()))))
    lines, room = [], MOST_NAMES
    for predicate in ordered:
        shown = unmarked(json.dumps(_clean(predicate.name), ensure_ascii=False))
        kinds = [_kind(ends[0].name) if ends else "" for ends in (predicate.subjects, predicate.objects)]
        if any(kinds):
            shown += f", from {kinds[0] or 'anything'} to {kinds[1] or 'anything'}"
        if predicate.values:
            shown += f", a {predicate.values[0].type}"
        room -= len(shown) + 1
        if room < 0:
            break
        lines.append(shown)
    block = "\n".join(lines)
    nonce = "names-" + hashlib.sha256(f"{text}\0{block}".encode()).hexdigest()[:16]
    try:
        return Template(template).substitute(nonce=nonce, predicates=block, claim=json.dumps(text, ensure_ascii=False))
    except (KeyError, ValueError) as error:
        raise OptionError(
            f"the prompt cannot be filled in: {error}", hint="it holds $nonce, $predicates and $claim; $ is $$"
        ) from None


def _kind(name: str) -> str:
    return unmarked(json.dumps(_clean(name), ensure_ascii=False)) if name else ""


def _clean(name: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in name[:LONGEST_SHOWN])


def _json(text: str) -> Any:
    """The JSON object in a model's text, whatever is around it; else the text."""
    start = text.find("{")
    if start >= 0:
        try:
            return json.JSONDecoder().raw_decode(text, start)[0]
        except (ValueError, RecursionError):
            pass
    return text


def _again(wrong: str) -> str:
    return (
        f"That cannot be used as it is: {shortened(wrong)}. Write the JSON again. Use a name of the graph only where it means "
        "what the claim says; else keep the words of the claim."
    )
