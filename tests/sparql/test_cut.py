"""JSON that is cut behind a row: strings that look like boundaries, whatever blocks it comes in."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable

from condgraph.sparql.workers.process import Braced, CutError

#: What looks like a boundary, or like the end of a string, and what stands around it.
PIECES = ["},{", '},{"', '"', "\\", "a", "}", "{", ",", "},{}", ":", "\n", "é", "]}}", "{},{", '\\"']


def document(rows: list[dict[str, object]], *, ascii_only: bool = False) -> bytes:
    said = {"head": {"vars": ["x", "y"]}, "results": {"bindings": rows}}
    return json.dumps(said, separators=(",", ":"), ensure_ascii=ascii_only).encode()


def cut(whole: bytes, limit: int, sizes: list[int], rng: random.Random) -> tuple[bytes, bool]:
    passing, at, found = Braced(limit), 0, b""
    try:
        while at < len(whole):
            size = rng.choice(sizes)
            found += passing.feed(whole[at : at + size])
            at += size
    except CutError as error:
        return found + error.tail, True
    return found + passing.rest(), False


def test_rows_of_any_text_in_blocks_of_any_size() -> None:
    rng = random.Random(7)
    for _ in range(6_000):
        rows: list[dict[str, object]] = []
        for _ in range(rng.randrange(7)):
            row: dict[str, object] = {}
            for name in "xy":
                if rng.random() < 0.7:
                    row[name] = {"type": "literal", "value": "".join(rng.choices(PIECES, k=rng.randrange(6)))}
            rows.append(row)
        limit, whole = rng.randrange(1, 7), document(rows, ascii_only=rng.random() < 0.5)
        found, shorter = cut(whole, limit, [1, 2, 3, 5, 17, 60, 1000], rng)
        assert shorter == (len(rows) > limit)
        assert json.loads(found)["results"]["bindings"] == rows[:limit], (limit, whole)


def test_to_count_rows_is_much_quicker_than_to_read_them() -> None:
    row: dict[str, object] = {"x": {"type": "uri", "value": "http://x/Person%207"}, "y": {"type": "literal", "value": "Person 7"}}
    whole = document([row] * 20_000)

    def least(run: Callable[[], object]) -> float:
        taken = []
        for _ in range(5):
            begin = time.process_time()
            run()
            taken.append(time.process_time() - begin)
        return min(taken)

    def counted() -> None:
        passing = Braced(30_000)
        for at in range(0, len(whole), 8192):
            passing.feed(whole[at : at + 8192])

    counting = least(counted)
    # It took several times as long as reading them all, where each string was looked at.
    assert counting < least(lambda: json.loads(whole)) / 2
