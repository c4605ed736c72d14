"""Read a claim in plain words by a language model as triples (SimGRAG, section 4.1 and Table 17), and again if the
triples contain names that the graph does not have.

The model only translates and decides nothing. The prompt is a versioned file (`prompts/`), which users can replace.
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

from condgraph.claims.claim import MAX_TRIPLES, Claim
from condgraph.claims.verify import Facts, reversed_notes, unknown
from condgraph.engine.bounds import check, left
from condgraph.engine.errors import CondgraphError, ModelError, OptionError, shortened
from condgraph.models.chat import Message, Usage, spoken
from condgraph.overview.schema import unmarked

if TYPE_CHECKING:
    from condgraph.models.chat import ChatModel
    from condgraph.overview.schema import GraphSchema

#: The file of the current prompt.
PROMPT: Final = "read-claim.1.txt"
#: The maximum length of the block of names in characters: about a thousand tokens.
MAX_NAMES: Final = 4_000
#: The maximum length of a name in the prompt, and of a claim, in characters.
MAX_NAME: Final = 120
MAX_CLAIM: Final = 4_000
MAX_TOKENS: Final = 800
#: The JSON schema of the model's output.
SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "triples": {
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_TRIPLES,
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
    """A claim as read by a model, with the number of attempts and the tokens used."""

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
    """Let a model read a claim. Raises `ModelError` if its output is not a claim.

    Errors in its output, and names that the graph does not have, are sent back to it at most `retries` times; the
    last reading counts.
    """
    if not text.strip():
        raise OptionError("the claim is empty")
    if len(text) > MAX_CLAIM:
        raise OptionError(f"the claim has {len(text):,} characters, and at most {MAX_CLAIM:,} are read")
    messages: list[Message] = [{"role": "user", "content": prompt_for(text, schema, prompt)}]
    usage, claim, errors = Usage(0, 0), None, ""
    attempts = 0
    while attempts <= retries:
        attempts += 1
        check()
        accepts_schema = "json-schema" in model.accepts
        completions = model.chat(
            messages, schema=SCHEMA if accepts_schema else None, max_tokens=MAX_TOKENS, temperature=0.0, seed=seed, timeout=left()
        )
        usage += completions.usage
        if not completions:
            raise ModelError(f"{model.name} returned no completion")
        completion = completions[0]
        if completion.finish == "refusal":
            raise ModelError(f"{model.name} did not read the claim: {shortened(completion.text, 200)}")
        try:
            claim = Claim.of(_json(spoken(completion.text)), text)
            problems = [*unknown(claim, facts), *reversed_notes(claim, facts)]
            errors = "; ".join(problem for problem in problems if problem.startswith("the graph "))
        except CondgraphError as error:
            claim, errors = None, str(error)
        if not errors:
            break
        messages += [{"role": "assistant", "content": completion.text}, {"role": "user", "content": _retry_prompt(errors)}]
    if claim is None:
        raise ModelError(f"{model.name} wrote no claim in {attempts} attempts: {errors}", hint="give the claim as triples")
    return Read(claim, attempts, usage, model.name)


def prompt_for(text: str, schema: GraphSchema, prompt: str | os.PathLike[str] | None = None) -> str:
    """Return the prompt for a claim: predicates that share words with it come first, then the most frequent ones.
    Raises `OptionError` if the template cannot be filled in.
    """
    built_in = resources.files("condgraph.claims") / "prompts" / PROMPT
    template = built_in.read_text("utf-8") if prompt is None else Path(prompt).read_text("utf-8")
    words = set(re.findall(r"\w{3,}", text.casefold()))
    ordered = sorted(schema.predicates, key=lambda item: -len(words & set(re.findall(r"\w{3,}", item.name.casefold()))))
    lines, remaining = [], MAX_NAMES
    for predicate in ordered:
        line = unmarked(json.dumps(_clean(predicate.name), ensure_ascii=False))
        kinds = [_kind(ends[0].name) if ends else "" for ends in (predicate.subjects, predicate.objects)]
        if any(kinds):
            line += f", from {kinds[0] or 'anything'} to {kinds[1] or 'anything'}"
        if predicate.values:
            line += f", a {predicate.values[0].type}"
        remaining -= len(line) + 1
        if remaining < 0:
            break
        lines.append(line)
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
    return "".join(letter if letter.isprintable() else " " for letter in name[:MAX_NAME])


def _json(text: str) -> Any:
    """Return the JSON object in a model's text, ignoring what surrounds it, or the text itself if there is none."""
    start = text.find("{")
    if start >= 0:
        try:
            return json.JSONDecoder().raw_decode(text, start)[0]
        except (ValueError, RecursionError):
            pass
    return text


def _retry_prompt(wrong: str) -> str:
    return (
        f"That cannot be used as it is: {shortened(wrong)}. Write the JSON again. Use a name of the graph only where it means "
        "what the claim says; else keep the words of the claim."
    )
