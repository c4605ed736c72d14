"""What the constraint accepts is the query-centred subgraph by its definition (Eq. 1), for names that
are made to confuse it, and three tokenizers.
"""

from __future__ import annotations

import random
import unicodedata
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, trainers

import condgraph
from condgraph import Graph
from condgraph.chains.chain import Chain, walk_through
from condgraph.chains.tokens import Coder, coder_of, tokens_of
from condgraph.engine.errors import ChainError, OptionError, UnknownNameError
from condgraph.engine.facts import Entity, Ref, Statement
from condgraph.engine.values import Quantity, text_of
from tests.chains.tokenizers_made import KINDS, made
from tests.support.chain_judge import Fact, Judge
from tests.support.chain_sequences import sequences
from tests.support.lanes import by_lane

NAMES = (
    "Jaws", "Jaws 2", "Jaws 2 3", "jaws", "A", "A -> r", "A -> r -> B", "A >", "< A", "B", "AB", "a - b", "a-b", '"A"', "A #1",
    "#A",
    "=A", "A [x -> y]", " A", "A ", "A  B", "", "Ｗ＞x", "Zürich", "名前", "<|end|>", "</s>", "\n", "1975", "8849 metre", "A\\",
    "é",
    "e\u0301", "'", "...", "\U0001f600", "\u200b", "[UNK]", "<0x3C>",
)  # fmt: skip
RELATIONS = ("r", "R", "r -> B", "directed by", "of", ">", "", "[r]", "名")
KINDS_OF = st.sampled_from(KINDS)


@st.composite
def graphs(draw: Any) -> tuple[dict[str, str], list[Fact], list[Any]]:
    """A small graph: names by id, its statements as facts and as items."""
    names = {f"e{at}": draw(st.sampled_from(NAMES)) for at in range(draw(st.integers(1, 6)))}
    ids = sorted(names)
    facts: dict[Fact, Statement] = {}
    for _ in range(draw(st.integers(0, 9))):
        head, relation = draw(st.sampled_from(ids)), draw(st.sampled_from(RELATIONS))
        kind = draw(st.sampled_from(["entity", "entity", "text", "other"]))
        qualifiers: tuple[tuple[str, str, str], ...] = ()
        given_: tuple[Any, ...] = ()
        if draw(st.booleans()) and draw(st.booleans()):
            key, year = draw(st.sampled_from(["since", "a ] b"])), draw(st.integers(1, 3))
            qualifiers, given_ = ((key, "other", str(year)),), ((key, Quantity(year)),)
        if kind == "entity":
            tail = draw(st.sampled_from(ids))
            thing: Any = Ref(tail)
        elif kind == "text":
            # White space of values is collapsed by whoever reads them.
            tail = " ".join(draw(st.sampled_from(NAMES)).split()) or "x"
            thing = tail
        else:
            thing = draw(st.sampled_from([Quantity(1975), Quantity(8849, "metre"), Quantity(1, "> m")]))
            tail = text_of(thing)
        facts[Fact(head, relation, kind, tail, qualifiers)] = Statement(head, relation, thing, given_)
    items: list[Any] = [Entity(ident, name) for ident, name in names.items()]
    return names, list(facts), [*items, *facts.values()]


def subgraph(facts: list[Fact], visited: set[str]) -> set[Fact]:
    """G_q by its definition."""
    return {one for one in facts if one.head in visited or (one.kind == "entity" and one.tail in visited)}


def fact_of(chain: Chain) -> set[Fact]:
    """What the complete triple of a chain means, from its statements."""
    found = set()
    for one in chain.found:
        said = chain.walk.place.evidence(one)
        thing = said.object
        kind = "entity" if isinstance(thing, Entity) else "text" if isinstance(thing, str) else "other"
        tail = thing.id if isinstance(thing, Entity) else text_of(thing)
        qualifiers = tuple((key, "other", text_of(value)) for key, value in said.qualifiers)  # type: ignore[arg-type]
        found.add(Fact(said.subject.id, said.predicate, kind, tail, qualifiers))
    return found


@pytest.mark.parametrize("kind", KINDS)
@given(made_of=graphs(), seed=st.integers(0, 1000))
@settings(max_examples=by_lane(40, 400, 4000), deadline=None)
def test_accepted_is_the_subgraph_by_definition(kind: str, made_of: Any, seed: int) -> None:
    names, facts, items = made_of
    tokenizer, rng = made(kind), random.Random(seed)
    graph = condgraph.open("memory:")
    graph.add(items)
    start = rng.choice(sorted(names))
    one = next(entity for entity in map(graph.current.entity, range(graph.current.entities)) if entity.id == start)
    judge = Judge({ident: graph.current.name(graph.current.identified(ident)) for ident in names}, facts)
    visited = {start}
    chain = Chain.of(_place(graph), [one], tokenizer, max_steps=3, repeat=True)
    for _ in range(2):
        complete = list(walk_through(chain))
        assert sequences(chain, 10_000) == [branch.ids for branch in complete]
        accepted = [fact_of(branch) for branch in complete]
        assert all(len(one) == 1 for one in accepted), "a text that could be two triples was accepted"
        found = {fact for one in accepted for fact in one}
        wanted = subgraph(facts, visited)
        assert found <= wanted
        for missing in wanted - found:
            assert _refused(graph, missing, facts, tokenizer, kind), f"{missing} was not accepted"
        if kind != "WordPiece":
            for branch in complete:
                if kind == "byte BPE":
                    text = tokenizer.decode(list(branch.ids), skip_special_tokens=False)
                    assert judge.read(text) == fact_of(branch)
                # The tokens are those of the whole text. Names that only the tokenizer takes for one get
                # their ids, which the text of a triple does not need.
                if len({unicodedata.normalize("NFKC", name) for name in names.values()}) < len(set(names.values())):
                    continue
                again = Coder(tokens_of(tokenizer)).whole([str(_triple(branch))])[0]
                assert again == branch.ids
        if not complete:
            break
        chain = rng.choice(complete)
        chain.commit()
        visited |= {end for one in fact_of_triple(chain) for end in ((one.head, one.tail) if one.kind == "entity" else (one.head,))}


def fact_of_triple(chain: Chain) -> set[Fact]:
    copy = chain.copy()
    copy._last_statements = chain.triples[-1].statements
    return fact_of(copy)


def _triple(branch: Chain) -> Any:
    return branch.copy().commit()


def _place(graph: Graph) -> Any:
    from condgraph.chains.methods import place_of

    return place_of(graph)


def _refused(graph: Graph, fact: Fact, facts: list[Fact], tokenizer: Any, kind: str) -> bool:
    """Whether a fact may be refused: a tokenizer cannot write it, or another fact has its tokens."""
    coder = coder_of(tokenizer)

    def parts(one: Fact) -> list[Any]:
        snapshot = graph.current
        head, tail = snapshot.name(snapshot.identified(one.head)), one.tail
        if one.kind == "entity":
            tail = snapshot.name(snapshot.identified(one.tail))
        return [tuple(one_) for one_ in tokens_of(tokenizer).encode_many([head, one.relation, tail])]

    mine = parts(fact)
    twins = [one for one in facts if one != fact and parts(one) == mine]
    # Some texts of numbers are names as well.
    twins += [one for one in facts if one != fact and (one.head, one.relation, one.tail) == (fact.head, fact.relation, fact.tail)]
    unwritten = any(not coder.tokens.special.isdisjoint(one) for one in mine) or kind == "WordPiece"
    return bool(twins) or unwritten


@pytest.fixture(scope="module")
def films() -> Graph:
    graph = condgraph.open("memory:")
    rows = [
        ("Jaws", "directed by", "Spielberg"), ("Jaws", "written by", "Benchley"), ("Jaws", "released", "1975"),
        ("Jaws 2", "released", "1978"), ("Jaws 2", "follows", "Jaws"), ("Duel", "directed by", "Spielberg"),
        ("Loop", "cites", "Loop"), ("Lone", "released", "1900"),
    ]  # fmt: skip
    graph.add([Statement(head, relation, Ref(tail)) for head, relation, tail in rows])
    return graph


@pytest.mark.parametrize("kind", KINDS)
def test_three_tokenizers_and_how_they_encode(kind: str) -> None:
    coder = coder_of(made(kind))
    assert coder.how == {"byte BPE": "pieces", "SentencePiece-like": "anchored pieces", "WordPiece": "pieces"}[kind]


def test_whole_triples_are_encoded_where_pieces_differ(films: Graph) -> None:
    """A tokenizer whose tokens run over spaces: its pieces are not its whole."""
    tokenizer = Tokenizer(models.BPE())
    signs = "".join(map(chr, range(32, 127)))
    tokenizer.train_from_iterator(
        ["\n", *["< Jaws -> directed by -> Spielberg >"] * 9, signs], trainers.BpeTrainer(vocab_size=130, show_progress=False)
    )
    coder = coder_of(tokenizer)
    assert coder.how == "whole triples"
    chain = films.chain(["Jaws"], coder)
    complete = list(walk_through(chain))
    assert {str(_triple(one)) for one in complete} == {str(one) for one in chain.walk.following()}
    assert all(one.ids == tuple(tokenizer.encode(str(_triple(one))).ids) for one in complete)
    assert sequences(chain, 100) == [one.ids for one in complete]
    _write(chain, random.Random(1))
    assert films.verify_chain(chain.text, ["Jaws"])


def test_it_is_closed(films: Graph) -> None:
    tokenizer = made("byte BPE")
    assert not len(films.chain([], tokenizer).allowed())
    assert films.chain([], tokenizer).done
    with pytest.raises(UnknownNameError, match="Jaws"):
        films.chain(["Jawz"], tokenizer)
    chain = films.chain(["Jaws"], tokenizer)
    before = chain.allowed()
    with pytest.raises(ChainError, match="not allowed"):
        chain.advance(int(before[0]) + 1)
    assert np.array_equal(chain.allowed(), before)
    assert before.dtype == np.int32
    with pytest.raises(ChainError, match="complete"):
        chain.commit()
    with pytest.raises(OptionError, match="max_steps"):
        films.chain(["Jaws"], tokenizer, max_steps=0)
    with pytest.raises(OptionError, match="not a tokenizer"):
        films.chain(["Jaws"], object())


def _write(chain: Chain, rng: random.Random) -> None:
    while not chain.done:
        while not chain.complete:
            chain.advance(rng.choice(chain.next()))
        chain.commit()


def test_used_triples_do_not_come_again(films: Graph) -> None:
    tokenizer = made("byte BPE")
    for seed in range(30):
        chain = films.chain(["Loop"], tokenizer, repeat=False)
        _write(chain, random.Random(seed))
        assert len(chain.triples) == 1
        chain = films.chain(["Jaws"], tokenizer, repeat=False, max_steps=9)
        _write(chain, random.Random(seed))
        # All there is around, and nothing twice, without an end that leads nowhere.
        assert len({str(one) for one in chain.triples}) == len(chain.triples) == 6


def test_all_that_may_follow_at_once(films: Graph) -> None:
    """The sequences put together at once are those gone through token by token: at the beginning, in
    the middle of a triple, and where triples were used.
    """
    rng = random.Random(3)
    for kind in KINDS[:2]:
        chain = films.chain(["Jaws"], made(kind), repeat=False, max_steps=6)
        while not chain.done:
            while not chain.complete:
                wanted = [branch.ids for branch in walk_through(chain)]
                assert sequences(chain, len(wanted)) == wanted
                assert sequences(chain, len(wanted) - 1) is None
                chain.advance(rng.choice(chain.next()))
            chain.commit()
        assert len(chain.triples) == 6
        assert sequences(chain, 1) == []


def test_a_copy_goes_on_by_itself(films: Graph) -> None:
    chain = films.chain(["Jaws"], made("byte BPE"))
    for token in chain.forced():
        chain.advance(token)
    branches = []
    for token in chain.next():
        branch = chain.copy()
        branch.advance(token)
        branches.append(branch.ids)
    assert len(set(branches)) == len(branches) > 1
    assert all(one[:-1] == chain.ids for one in branches)


def test_evidence_and_values() -> None:
    graph = condgraph.open("memory:")
    graph.add(
        [Statement("Nepal", "height of highest point", Quantity(8849, "metre")), Statement("Nepal", "motto", "a > b"),
         Statement("Nepal", "population", Quantity(26), (("point in time", Quantity(2011)),))],
        source="almanac",
    )  # fmt: skip
    tokenizer = made("byte BPE")
    found = sorted(str(_triple(one)) for one in walk_through(graph.chain(["Nepal"], tokenizer)))
    assert found == [
        "< Nepal -> height of highest point -> 8849 metre >",
        '< Nepal -> motto -> "a \\u003e b" >',
        "< Nepal -> population -> 26 [point in time: 2011] >",
    ]
    assert not len(graph.chain(["Nepal"], tokenizer, values=False).allowed())
    bare = [str(_triple(one)) for one in walk_through(graph.chain(["Nepal"], tokenizer, qualifiers=False))]
    assert "< Nepal -> population -> 26 >" in bare
    chain = graph.chain(["Nepal"], tokenizer)
    _write(chain, random.Random(1))
    assert [source.name for source, _ in chain.triples[0].evidence[0].sources] == ["almanac"]


def test_tokens_that_begin_a_triple_unseen_are_banned_in_free_text() -> None:
    tokenizer = made("byte BPE")
    coder = coder_of(tokenizer)
    texts = {tokenizer.decode([ident]) for ident in coder.banned.tolist()}
    assert texts
    assert all("<" in text and text.strip() != "<" for text in texts)
    assert {tokenizer.decode([ident]).strip() for ident in coder.begins.tolist()} == {"<"}
