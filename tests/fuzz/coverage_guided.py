"""Coverage-guided fuzzing with atheris, which is no dependency: `pip install atheris`, then

    python -m tests.fuzz.coverage_guided kopl 60

fuzzes a target ("kopl", "kopl json", or the name of a format) for so many seconds. It ends with an error at the first failure and
leaves the input that led to it in the working directory (`crash-...`).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path


def main(target: str = "kopl", seconds: str = "60") -> None:
    """Fuzz one target."""
    try:
        import atheris
    except ImportError:
        sys.exit("atheris is not installed: pip install atheris")
    with atheris.instrument_imports(include=["condgraph"]):
        from tests.fuzz import targets

    def run(content: bytes) -> None:
        if target == "kopl":
            targets.ask(content)
        elif target == "kopl json":
            targets.ask_json(content)
        else:
            targets.load(content, target)

    def change(content: bytes, most: int, seed: int) -> bytes:
        changed: bytes = atheris.Mutate(content, most)
        return targets.mutated(targets.Dice(seed), changed)[:most] if seed % 3 == 0 else changed

    if target not in ("kopl", "kopl json", *targets.FILES):
        sys.exit(f"there is no target {target!r}; targets: kopl, kopl json, {', '.join(targets.FILES)}")
    with tempfile.TemporaryDirectory() as folder:
        for number, content in enumerate((*targets.seeds(target), *targets.NASTY)):
            (Path(folder) / str(number)).write_bytes(content)
        options = [f"-max_total_time={seconds}", "-max_len=20000", "-timeout=20", "-rss_limit_mb=4096", "-print_final_stats=1"]
        atheris.Setup([sys.argv[0], *options, folder], run, custom_mutator=change)
        atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
