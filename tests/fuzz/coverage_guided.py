"""Coverage-guided fuzzing with atheris, which is no dependency: `pip install atheris`, then

    python -m tests.fuzz.coverage_guided kopl 60

fuzzes a target ("kopl", "kopl json", the name of a format or of a reader, `readers.READERS`) for so
many seconds. It ends with an error at the first failure, which a byte is that costs more than
`readers.BUDGET`, and leaves the input that led to it in the working directory (`crash-...`).
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

#: How many times as long code takes whose coverage is watched, and that does all a target does.
INSTRUMENTED = 20


def main(target: str = "kopl", seconds: str = "60") -> None:
    """Fuzz one target."""
    try:
        import atheris
    except ImportError:
        sys.exit("atheris is not installed: pip install atheris")
    with atheris.instrument_imports(include=["condgraph"]):
        from tests.fuzz import readers, targets

    names = ("kopl", "kopl json", *targets.FILES, *(name for name in readers.READERS if name not in targets.FILES))

    def run(content: bytes) -> None:
        begin = time.process_time()
        look(content)
        taken, most = time.process_time() - begin, readers.most(len(content)) * INSTRUMENTED
        if taken > most:
            raise targets.Slow(f"{len(content)} bytes took {taken:.1f} s, and may take {most:.1f}")

    def look(content: bytes) -> None:
        if target == "kopl":
            targets.ask(content)
        elif target == "kopl json":
            targets.ask_json(content)
        elif target in targets.FILES:
            targets.load(content, target)
        else:
            readers.cost(readers.READERS[target], content)

    def change(content: bytes, most: int, seed: int) -> bytes:
        changed: bytes = atheris.Mutate(content, most)
        return targets.mutated(targets.Dice(seed), changed)[:most] if seed % 3 == 0 else changed

    if target not in names:
        sys.exit(f"there is no target {target!r}; targets: {', '.join(names)}")
    known = target.startswith("kopl") or target in targets.FILES
    seeds = targets.seeds(target) if known else readers.seeds(readers.READERS[target])
    with tempfile.TemporaryDirectory() as folder:
        for number, content in enumerate((*seeds, *targets.NASTY)):
            (Path(folder) / str(number)).write_bytes(content)
        options = [f"-max_total_time={seconds}", "-max_len=20000", "-timeout=20", "-rss_limit_mb=4096", "-print_final_stats=1"]
        if seed := os.environ.get("FUZZ_SEED"):
            options.append(f"-seed={seed}")
        atheris.Setup([sys.argv[0], *options, folder], run, custom_mutator=change)
        atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
