"""Every reader of foreign text is linear and bounded: whatever is repeated, a value or a typed
error, soon, with a short text.
"""

from __future__ import annotations

import gc
import random
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.fuzz import readers, targets
from tests.fuzz.pieces import BOMBS, PAIRS, SINGLES
from tests.support.lanes import by_lane
from tests.support.pace import quick_enough

UNITS = tuple(dict.fromkeys((*SINGLES, *PAIRS)))
#: Bytes of a short text, and of the text four times as long.
SHORT, LONG = 8_000, 32_000
MEGABYTE = 1_000_000


@pytest.fixture(scope="module", autouse=True)
def _alone() -> Iterator[None]:
    """What other tests left in this process is not looked through while a reader is timed."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def sampled(name: str, count: int) -> list[tuple[tuple[str, str], str]]:
    """Some of the pieces in the frames of a reader, other ones for each reader and always the same."""
    cases = list(readers.cases(readers.READERS[name], UNITS))
    return random.Random(name).sample(cases, min(count, len(cases)))


def quickest(reader: readers.Reader, content: bytes, enough: float) -> float:
    """The least of up to three runs; others use this machine as well."""
    best = readers.cost(reader, content)
    for _ in range(2):
        if best <= enough:
            break
        best = min(best, readers.cost(reader, content))
    return best


def test_every_format_and_language_is_in_the_table() -> None:
    """One that is added is tested here, and fuzzed."""
    assert readers.missing() == []


@pytest.mark.parametrize("name", readers.READERS)
def test_repeated_pieces(name: str) -> None:
    """Four times the text takes four times as long, and no byte more than the budget."""
    reader = readers.READERS[name]
    readers.a_graph().rdf()
    readers.cost(reader, b"a")
    for frame, unit in sampled(name, by_lane(4, 60, 150)):
        content = readers.text(frame, unit, LONG)
        taken = quickest(reader, content, readers.most(LONG) / 4)
        assert quick_enough(taken, readers.most(LONG)), (name, frame, unit, taken)
        if taken > 0.2:
            # Both at their best: what else runs on this machine may slow down one of them.
            short = quickest(reader, readers.text(frame, unit, SHORT), 0.0)
            for _ in range(3):
                if taken <= max(9 * short, 0.4):
                    break
                taken = min(taken, quickest(reader, content, 0.0))
            assert taken <= max(9 * short, 0.4), (name, frame, unit, short, taken)


#: What took the square of its length, or more, once: the reader, the frame, the piece.
ONCE_SLOW = (
    *(
        ("replies", ("Query", ""), "1"),
        ("replies", ("Query1", ""), "_"),
        ("replies", ("x(\n", ""), " "),
        ("replies", ("```", "(x"), "\t"),
    ),
    *(("nodes", ("UNKNOWN ", "x"), "1"), ("nodes", ("Unknown", "x"), "-"), ("nodes", ("?a", "!"), "1")),
    *(("mapping", ("", "a = 1\n"), "a."), ("declaration", ("", "a = 1\n"), "a."), ("questions", ("q\t", "\tx#\n"), "(")),
    # Not the square, but a look at every name for each of a hundred thousand quoted texts.
    ("excerpt", ("", ""), '\\"'),
)


@pytest.mark.parametrize(("name", "frame", "unit"), ONCE_SLOW)
def test_what_was_slow(name: str, frame: tuple[str, str], unit: str) -> None:
    reader = readers.READERS[name]
    content = readers.text(frame, unit, 90_000)
    assert quick_enough(quickest(reader, content, readers.most(len(content))), readers.most(len(content)))


@pytest.mark.parametrize("name", [name for name in readers.READERS if name not in targets.FILES])
def test_seeds_of_the_fuzzers(name: str) -> None:
    """Where fuzzing begins, and what parsers stumble over, in bytes that are no text as well."""
    reader = readers.READERS[name]
    for content in (*readers.seeds(reader), *targets.NASTY):
        readers.cost(reader, content)


@pytest.mark.parametrize("name", readers.READERS)
def test_what_blows_up(name: str) -> None:
    """Numbers, dates, marks and brackets that become more than they are."""
    reader = readers.READERS[name]
    dice = random.Random(name)
    frames = dice.sample(reader.frames, min(by_lane(1, 3, 1000), len(reader.frames)))
    for frame in frames:
        for piece in dice.sample(BOMBS, by_lane(len(BOMBS) // 10, len(BOMBS), len(BOMBS))):
            content = readers.whole(frame, piece)
            taken = quickest(reader, content, readers.most(len(content)))
            assert quick_enough(taken, readers.most(len(content))), (name, frame, piece[:20], taken)


@pytest.mark.slow
@pytest.mark.parametrize("name", readers.READERS)
def test_a_megabyte(name: str) -> None:
    """A megabyte of one character, in each of a reader's frames in turn; other characters for other
    readers.
    """
    reader = readers.READERS[name]
    for number, unit in enumerate(random.Random(name).sample(SINGLES, by_lane(6, 6, 12))):
        content = readers.text(reader.frames[number % len(reader.frames)], unit, MEGABYTE)
        taken = quickest(reader, content, readers.most(MEGABYTE))
        assert quick_enough(taken, readers.most(MEGABYTE)), (name, reader.frames[number % len(reader.frames)], unit, taken)


@pytest.mark.parametrize(
    "name",
    [
        "kopl",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("sparql survey", "sparql translate", "pattern", "csv", "language")
        ),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("language", "accept", "rdf")),
    ],
)
def test_memory(name: str) -> None:
    """A megabyte is read within a gigabyte, in a process of its own: nothing is kept for each
    character.

    Linux counts what the process that started it had into `ru_maxrss`, and not into VmHWM.
    """
    program = (
        "import re, resource\nfrom pathlib import Path\nfrom tests.fuzz import readers\n"
        f"reader = readers.READERS[{name!r}]\nreaders.a_graph()\nreaders.cost(reader, b'a')\n"
        "resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))\n"
        "for unit in ('1', 'é', '(', '\"', '\\\\', ' '):\n"
        f"    readers.cost(reader, readers.text(reader.frames[0], unit, {MEGABYTE}))\n"
        "status = Path('/proc/self/status')\n"
        "kept = re.search(r'VmHWM:\\s*(\\d+) kB', status.read_text()) if status.exists() else None\n"
        "print(int(kept[1]) * 1024 if kept else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) < 1 << 30, done.stdout
