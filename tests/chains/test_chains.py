"""Chains as models write them: random ones and mutants by an independent judge, texts judged, beams
against all that there is, questions to answers, models behind scripted servers.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

import condgraph
from condgraph import Graph
from condgraph.chains.backends.base import Free, Prompt, best_triples, gbnf_of_parts, gbnf_of_texts, mentioned, regex_of
from condgraph.chains.backends.hosted import ENOUGH, Hosted, Repaired
from condgraph.chains.backends.vllm import Vllm
from condgraph.chains.chain import Parts, parts, walk_through
from condgraph.chains.methods import place_of
from condgraph.chains.place import StorePlace
from condgraph.chains.text import triples_in
from condgraph.chains.walk import Walk
from condgraph.engine.errors import ModelError, OptionError
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.models.chat import Completion, Completions
from tests.chains.tokenizers_made import KINDS, made
from tests.support.chain_judge import Fact, Judge
from tests.support.chain_sequences import sequences
from tests.support.lanes import by_lane
from tests.support.pace import quick_enough


def _rows(seed: int) -> list[tuple[str, str, str]]:
    """A graph of 60 films, with hubs, loops and parallel relations."""
    rng, found = random.Random(seed), set()
    films = [f"Film {at}" for at in range(60)]
    for film in films:
        found.add((film, "released", str(1970 + rng.randrange(9))))
        for relation in ("directed by", "written by"):
            found.add((film, relation, f"Person {rng.randrange(25)}"))
        found.add((film, "genre", rng.choice(["Drama", "Comedy"])))
    found.add(("Film 1", "cites", "Film 1"))
    return sorted(found)


ROWS = _rows(5)
JUDGE = Judge({name: name for row in ROWS for name in (row[0], row[2])}, [Fact(s, p, "entity", o) for s, p, o in ROWS])


@pytest.fixture(scope="module")
def films() -> Graph:
    graph = condgraph.open("memory:")
    graph.add([Statement(head, relation, Ref(tail)) for head, relation, tail in ROWS], source="films")
    return graph


def _random(chain: Any, rng: random.Random) -> Any:
    while not chain.done:
        while not chain.complete:
            if not (allowed := chain.next()):
                # A name that the tokenizer cannot write: closed.
                return chain
            chain.advance(rng.choice(allowed))
        chain.commit()
    return chain


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("repeat", [True, False])
def test_no_random_chain_is_ill_formed(films: Graph, kind: str, repeat: bool) -> None:
    rng, names = random.Random(1), sorted(JUDGE.names)
    for _ in range(by_lane(150, 1500, 17_000)):
        name = rng.choice(names)
        chain = _random(films.chain([name], made(kind), max_steps=rng.randint(1, 4), repeat=repeat), rng)
        if kind != "WordPiece":
            assert chain.done
        elif not chain.triples:
            continue
        assert JUDGE.problem(chain.text, [name], most=4, repeat=repeat) is None, chain.text


def test_the_judges_agree_on_mutants(films: Graph) -> None:
    """Chains of which a sign, a part or the order was changed: the checker of the tests notices all
    that change what is said, and `verify_chain` agrees with it.
    """
    rng, names, tokenizer = random.Random(2), sorted(JUDGE.names), made("byte BPE")
    wrong = 0
    for number in range(by_lane(400, 2000, 2000)):
        name = rng.choice(names)
        text = _random(films.chain([name], tokenizer, max_steps=3, repeat=False), rng).text
        mutant = _mutant(text, rng, number)
        bad = JUDGE.problem(mutant, [name], repeat=False)
        wrong += bad is not None
        assert bool(films.verify_chain(mutant, [name], repeat=False)) is (bad is None), (mutant, bad)
    assert wrong > 0.8 * by_lane(400, 2000, 2000)


def _mutant(text: str, rng: random.Random, number: int) -> str:
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    head, relation, tail = lines[at][2:-2].split(" -> ")
    if number % 6 == 0:
        head, tail = tail, head
    elif number % 6 == 1:
        relation = rng.choice(["released", "written by", "nothing"])
    elif number % 6 == 2:
        tail = rng.choice(sorted(JUDGE.names))
    elif number % 6 == 3:
        head += "x"
    elif number % 6 == 4:
        lines.append(lines[at])
    else:
        other = rng.choice(ROWS)
        head, relation, tail = other
    lines[at] = f"< {head} -> {relation} -> {tail} >"
    return "\n".join(lines)


def test_why_a_text_is_no_chain(films: Graph) -> None:
    row = next(row for row in ROWS if row[0] == "Film 1" and row[1] == "released")
    cases = {
        "nothing here, 1 < 2": "no triple",
        "< Film 1 -> released": "malformed",
        "< Film 1 -> released -> 1 -> 2 >": "malformed",
        "< Filn 1 -> released -> 1970 >": "unknown",
        "< Film 1 -> relased -> 1970 >": "absent",
        "< Film 1 -> released -> 2050 >": "absent",
        f"so < {' -> '.join(next(r for r in ROWS if r[0] == 'Film 2' and r[2] not in dict(ROWS_OF_1)))} >": "unconnected",
        f"< {' -> '.join(row)} > and < {' -> '.join(row)} >": "repeated",
    }
    for text, why in cases.items():
        assert films.verify_chain(text, ["Film 1"], repeat=False).why == why, text
    verdict = films.verify_chain(f"As we know, < {' -> '.join(row)} > holds.", ["Film 1"])
    assert verdict
    assert verdict.triples[0].evidence[0].sources[0][0].name == "films"
    assert films.verify_chain("< Film 1 -> relased -> 1970 >", ["Film 1"]).wrong.reason.endswith("nearest: 'released'")  # type: ignore[union-attr]


def test_a_name_of_several_is_told_to_be_open() -> None:
    """What the graph has is not called absent because a name lacks the id that tells it from others."""
    graph = condgraph.open()
    items = [Entity("p1", "Paris"), Entity("p2", "Paris"), Entity("fr", "France"), Statement("p1", "country", Ref("fr"))]
    graph.add([*items, Statement("p2", "county", Ref("p1"))])
    assert graph.verify_chain("< Paris #p1 -> country -> France >", ["Paris"])
    for text in ("< Paris -> country -> France >", "< Paris -> county -> Paris >", "< Paris #p2 -> county -> Paris >"):
        verdict = graph.verify_chain(text, ["Paris"])
        assert verdict.why == "ambiguous", text
    assert "Paris #p1" in graph.verify_chain("< Paris -> country -> France >", ["Paris"]).wrong.reason  # type: ignore[union-attr]
    for text in ("< Paris -> capital -> France >", "< Paris -> country -> Spain >"):
        assert graph.verify_chain(text, ["Paris"]).why == "absent", text


ROWS_OF_1 = [(row[2], row[1]) for row in ROWS if row[0] == "Film 1"]


@pytest.mark.parametrize("text", ['< "' * 40_000, "< a -> " * 20_000, '"<\\' * 40_000, "<" * 100_000, "< a -> b [" * 12_000])
def test_nonsense_is_read_in_linear_time(text: str) -> None:
    begin = time.process_time()
    list(triples_in(text))
    assert quick_enough(time.process_time() - begin, 10)


# -- the search ------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", ["masked", "raw"])
def test_beams_against_all_that_there_is(films: Graph, score: Any) -> None:
    """With as many beams as there are triples the search is exhaustive; with fewer it is the plain
    beam search over the same probabilities.
    """
    tokenizer = made("byte BPE")
    size = tokenizer.get_vocab_size()

    def logs(ids: Sequence[int]) -> Any:
        raw = np.random.default_rng(hash(tuple(ids)) % 2**32).normal(size=size)
        return raw - np.log(np.exp(raw).sum())

    def scorer(ids: Sequence[int], start: int, allowed: Sequence[int]) -> tuple[list[float], list[float]]:
        behind = [float(logs(ids[:at])[ids[at]]) for at in range(start, len(ids))]
        return behind, logs(ids)[list(allowed)].tolist()

    chain = films.chain(["Film 3"], tokenizer)
    every: list[tuple[float, tuple[int, ...]]] = []
    for whole in walk_through(chain):
        total, branch = 0.0, chain.copy()
        for at, token in enumerate(whole.ids):
            allowed = branch.next()
            found = logs(whole.ids[:at])
            total += found[token] - (np.log(np.exp(found[allowed]).sum()) if score == "masked" else 0.0)
            branch.advance(token)
        every.append((total, whole.ids))
    every.sort(reverse=True)
    best = best_triples(chain, scorer, 5, score, width=len(every))
    assert np.allclose([one.score for one in best], [total for total, _ in every[:5]])  # type: ignore[arg-type]
    narrow = best_triples(chain, scorer, 2, score)
    assert len(narrow) == 2
    assert narrow[0].score <= every[0][0] + 1e-9  # type: ignore[operator]


class Toy:
    """A model that scores triples by a table: it likes what is about a word."""

    name, model = "a table", "toy"

    def __init__(self, liked: Sequence[str]) -> None:
        self.liked = liked

    def told(self, n: int, wanted: Any) -> Any:
        return wanted

    def chain(self, walk: Walk) -> None:
        return None

    def triples(self, prompt: Prompt, walk: Walk, n: int, score: Any) -> Any:
        from condgraph.chains.backends.base import Proposal

        found = [Proposal(one, self.worth(str(one)), 3) for one in walk.following()]
        return sorted(found, key=lambda one: (-(one.score or 0), str(one.triple)))[:n]

    def worth(self, text: str) -> float:
        return -1.0 - (hash_of(text) % 97) / 10 + sum(50.0 for word in self.liked if word in text) - 10

    def free(self, prompt: Prompt, most: int) -> Free:
        return Free("I think so.", True)

    def choose(self, prompt: Prompt, options: Sequence[str]) -> int | None:
        return 0 if options else None


def hash_of(text: str) -> int:
    return sum(at * ord(sign) for at, sign in enumerate(text, 1))


def test_the_search_is_the_best_chain_where_beams_are_wide(films: Graph) -> None:
    toy = Toy(["directed by"])
    found = films.reason("who made Film 3?", toy, entities=["Film 3"], max_steps=2, beams=2000, shown=5)
    start = Walk.of(place_of(films), ["Film 3"], 2, False)
    every = [
        toy.worth(str(one)) + toy.worth(str(two)) for one in start.following() for two in start.commit(one).following()
    ]  # fmt: skip
    assert found.chains[0].score == pytest.approx(max(every))
    texts = [str(one) for one in found.chains]
    assert len(set(texts)) == len(texts)
    assert JUDGE.problem("\n".join(map(str, found.chain)), ["Film 3"], repeat=False) is None
    assert found.said == "I think so. I think so."
    assert found.evidence[0].sources[0][0].name == "films"
    assert (found.backend, found.score, found.combined) == ("a table", "masked", "sum")


def test_a_question_names_its_entities(films: Graph) -> None:
    found = films.reason("When was Film 12 released?", Toy(["released"]), max_steps=1, free=False)
    assert [one.name for one in found.query] == ["Film 12"]
    assert found.texts == [{row[1]: row[2] for row in ROWS if row[0] == "Film 12"}["released"]]
    nobody = films.reason("When was it?", Toy([]), max_steps=1)
    assert nobody.texts == []
    assert any("names no entity" in warning for warning in nobody.warnings)
    with pytest.raises(OptionError, match="score"):
        films.reason("?", Toy([]), score="best")


def test_a_part_of_the_graph(films: Graph) -> None:
    found = films.reason("genre of Film 3?", Toy([]), entities=["Film 3"], subgraph=3, max_steps=3, free=False)
    assert found.walk is not None
    assert len(found.walk.statements) <= 3
    local = films.reason("genre of Film 3?", Toy([]), entities=["Film 3"], visibility="local", max_steps=2, free=False)
    assert len(local.chain) == 2


# -- models of conversations -----------------------------------------------------------------------


class Scripted:
    """A chat model that answers by a function of the last message and the schema."""

    name = "scripted"

    def __init__(self, answer: Any, accepts: Sequence[str] = ()) -> None:
        self.answer, self.accepts, self.asked = answer, frozenset(accepts), []

    def chat(self, messages: Sequence[Mapping[str, str]], *, schema: Any = None, **options: Any) -> Completions:
        self.asked.append((messages, schema))
        return Completions((Completion(self.answer(messages, schema)),))

    def count(self, text: str) -> int | None:
        return None


def test_two_enumerations_a_hop(films: Graph) -> None:
    def answer(messages: Any, schema: Any) -> str:
        ((field, kind),) = schema["properties"].items()
        assert schema["additionalProperties"] is False
        wanted = [one for one in kind["enum"] if "Film 7 -> released" in one] or kind["enum"]
        return json.dumps({field: ENOUGH if ENOUGH in kind["enum"] else wanted[0]})

    model = Scripted(answer, ["json-schema"])
    found = films.reason("When was Film 7 released?", model, max_steps=3)
    assert found.texts == [{row[1]: row[2] for row in ROWS if row[0] == "Film 7"}["released"]]
    assert (found.backend, found.score) == (Hosted.name, "none")
    many = condgraph.open("memory:")
    many.add([Statement(f"Film {at}", "genre", Ref("Drama")) for at in range(1500)])
    found = many.reason("genre of [Drama]", Scripted(answer, ["json-schema"]), max_steps=1)
    assert any("were offered, of 1500" in warning for warning in found.warnings)
    with pytest.raises(ModelError, match="not offered"):
        films.reason("When was Film 7 released?", Scripted(lambda *_: '{"step": "free"}', ["json-schema"]))


def test_generate_verify_repair(films: Graph) -> None:
    right = next(row for row in ROWS if row[:2] == ("Film 7", "released"))
    said = iter(["< Film 7 -> released -> 1850 >", f"< {' -> '.join(right)} >", "DONE", f"It is {right[2]}."])
    model = Scripted(lambda *_: next(said))
    found = films.reason("When was Film 7 released?", model, max_steps=3)
    assert found.texts == [right[2]]
    assert found.backend == Repaired.name
    assert "the graph does not say it" in str(model.asked[1][0])
    never = films.reason("When was Film 7 released?", Scripted(lambda *_: "I do not know"), max_steps=3)
    assert never.texts == []
    assert any("repairs" in warning for warning in never.warnings)


def test_text_that_names_nothing_is_no_answer() -> None:
    assert mentioned("Therefore, it is Steven Spielberg.", ["Steven", "Steven Spielberg"]) == 1
    assert mentioned("first Drama, in the end Comedy", ["Drama", "Comedy"]) == 1
    assert mentioned("melodramatic", ["Drama"]) is None


# -- grammars and servers --------------------------------------------------------------------------


def test_grammars_are_factored() -> None:
    assert gbnf_of_tokens([(1, 2, 3), (1, 2, 4), (1, 5)]).splitlines()[0] == "root ::= <[1]> r1"
    assert "flat" not in gbnf_of_texts(["flat a", "flat b"]).replace('"flat "', "")
    texts = [str(one) for one in Walk.of(place_of(condgraph_of()), ["Drama"], 1, True).following()]
    import re

    expression = re.compile(regex_of(texts))
    assert all(expression.fullmatch(text) for text in texts)
    assert not expression.fullmatch(texts[0][:-1])
    assert len(regex_of(texts)) < sum(map(len, texts))


def _accepted(grammar: str) -> set[tuple[int, ...]]:
    """Every sequence that a grammar of token ids accepts, by writing its rules out."""
    rules = dict(line.split(" ::= ") for line in grammar.splitlines())

    def of(name: str) -> set[tuple[int, ...]]:
        found: set[tuple[int, ...]] = set()
        for alternative in rules[name].split(" | "):
            several: set[tuple[int, ...]] = {()}
            for part in alternative.split():
                more = {()} if part == '""' else of(part) if part in rules else {(int(part[2:-2]),)}
                several = {(*one, *two) for one in several for two in more}
            found |= several
        return found

    return of("root")


@pytest.mark.parametrize("kind", KINDS)
def test_grammar_and_mask_accept_the_same(films: Graph, kind: str) -> None:
    """At each step of a chain, whatever the grammar accepts is what the masks let through, and
    nothing else.
    """
    rng = random.Random(8)
    for name in ("Film 1", "Film 7", "Drama", "Person 3"):
        chain = films.chain([name], made(kind), max_steps=3, repeat=False)
        while found := sequences(chain, 10_000):
            masked = {one.ids: one for one in walk_through(chain)}
            assert _accepted(gbnf_of_tokens(found)) == masked.keys()
            pieces = parts(chain, 10_000)
            assert pieces is not None
            assert _accepted(gbnf_of_parts(pieces)) == masked.keys()
            assert (len(pieces), pieces.longest) == (len(masked), max(map(len, masked)))
            chain = masked[rng.choice(sorted(masked))]
            chain.commit()
        assert chain.triples or kind == "WordPiece"


def test_what_follows_many_heads_is_written_once() -> None:
    """Around a hub the grammar has one rule for what all heads go on with, beside the heads."""
    graph = condgraph.open("memory:")
    graph.add([Statement(f"Film {at}", "genre", Ref(thing)) for at in range(200) for thing in ("Drama", "Comedy")])
    chain = graph.chain(["Drama", "Comedy"], made("byte BPE"), max_steps=1)
    pieces = parts(chain, 1000)
    assert pieces is not None
    assert (len(pieces), len(pieces.heads), len(pieces.ends)) == (400, 200, 1)
    # A triple more has a head more, and nothing else.
    close = f"<[{pieces.ends[0][0][-1]}]>"
    assert gbnf_of_parts(pieces).count(close) < 10 < gbnf_of_tokens(pieces.sequences()).count(close)
    assert _accepted(gbnf_of_parts(pieces)) == set(sequences(chain, 1000) or ())
    assert parts(chain, 399) is None


def gbnf_of_tokens(found: Iterable[Sequence[int]]) -> str:
    """A grammar of whole sequences, in one piece."""
    return gbnf_of_parts(Parts([((), 0)], [sorted(set(map(tuple, found)))]))


def condgraph_of() -> Graph:
    graph = condgraph.open("memory:")
    graph.add([Statement(head, relation, Ref(tail)) for head, relation, tail in ROWS])
    return graph


def test_the_same_from_an_rdf_store(films: Graph) -> None:
    place = place_of(films, "sparql")
    assert isinstance(place, StorePlace)
    there = Walk.of(place, ["Film 3"], 4, True)
    here = Walk.of(place_of(films), ["Film 3"], 4, True)
    rng = random.Random(4)
    for _ in range(3):
        mine, theirs = ({str(one): one for one in walk.following()} for walk in (here, there))
        assert mine.keys() == theirs.keys()
        text = rng.choice(sorted(mine))
        before = place.queries
        here, there = here.commit(mine[text]), there.commit(theirs[text])
        assert place.queries - before <= 1
    few = StorePlace(films._store_of("sparql"), most=5)  # type: ignore[arg-type]
    assert len(list(Walk.of(few, ["Drama"], 1, True).following())) <= 5
    assert few.warnings


def test_ends_and_qualifiers_beyond_the_bound_have_their_ids() -> None:
    """Four statements are within the bound, and what stands in them is not: nobody looks who else has
    the names of all of it.
    """
    graph = condgraph.open()
    graph.add([Entity("hub", "hub")])
    for i in range(4):
        graph.add([Entity(f"{one}{i}{more}", f"{one}{i}") for one in "ab" for more in ("", " too")])
        graph.add([Statement("hub", "won", Ref(f"a{i}"), (("for", Ref(f"b{i}")),))])
    for most in (5, 100):
        place = StorePlace(graph._store_of("sparql"), most=most)  # type: ignore[arg-type]
        (hub,) = place.find("hub")
        assert not place.warnings
        tails = [place.tail(one) for one in place.outgoing(hub).tolist()]
        assert [tail.count("#") for tail in tails] == [2] * 4, tails


class _Vllm(BaseHTTPRequestHandler):
    """A server that answers with a text that fits the expression it is given, or with a fault."""

    texts: Sequence[str] = ()
    fault = ""

    def do_POST(self) -> None:
        import re

        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        wanted = (body.get("structured_outputs") or {}).get("regex", "")
        fitting = [text for text in self.texts if re.fullmatch(wanted, text)] or [" 1978"]
        text = "free text" if self.fault == "free" else fitting[0]
        choice = {"text": text, "logprobs": {"token_logprobs": [-0.5, -0.25]}, "stop_reason": None}
        data = b"not json" if self.fault == "json" else json.dumps({"choices": [choice]}).encode()
        self.send_response(500 if self.fault == "500" else 200)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def vllm_server() -> Iterator[tuple[str, type[_Vllm]]]:
    class Own(_Vllm):
        pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Own)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1", Own
    server.shutdown()
    server.server_close()


def test_vllm_and_its_faults(films: Graph, vllm_server: tuple[str, type[_Vllm]]) -> None:
    place, server = vllm_server
    row = next(row for row in ROWS if row[:2] == ("Film 7", "released"))
    server.texts = [f"< {' -> '.join(row)} >", f" {row[2]}"]
    llm = Vllm(place, "m")
    found = films.reason("When was Film 7 released?", llm, max_steps=1, free=False)
    assert found.texts == [row[2]]
    assert (found.score, found.chains[0].score) == ("raw", -0.75)
    for fault, message in (("500", "answered 500"), ("json", "no JSON"), ("free", "does not allow")):
        server.fault = fault
        with pytest.raises(ModelError, match=message):
            films.reason("When was Film 7 released?", llm, max_steps=1, free=False)
