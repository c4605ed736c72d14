"""Build the libraries of the studio's page into the package, from the npm registry.

    python tools/studio.py           writes vendor.js, vendor-drawing.js and vendor.LICENSES.txt into condgraph/studio/static
    python tools/studio.py --check   fails if these files differ from what would be written

The files are a script for the editor, one for drawings, and the licences of all packages in them. Needs `npm`.
`tools/studio/package-lock.json` fixes every version and checksum, so that the same files are built anywhere. The page's
own code is served as it is, without a build.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from yasgui import licences

SOURCE = Path(__file__).parent / "studio"
STATIC = Path(__file__).parents[1] / "condgraph" / "studio" / "static"
SCRIPTS = ("vendor.js", "vendor-drawing.js")
HEAD = f"{' and '.join(SCRIPTS)} are built from the packages below, by tools/studio.py.\n"


def main() -> None:
    """Install the locked packages, bundle them, and write or compare the files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail where something differs")
    options = parser.parse_args()
    if shutil.which("npm") is None:
        sys.exit("npm is not installed")
    with tempfile.TemporaryDirectory() as folder:
        built = build(Path(folder))
    for name, data in built.items():
        path = STATIC / name
        if not options.check:
            path.write_bytes(data)
        elif not path.exists() or path.read_bytes() != data:
            sys.exit(f"{path.name} is not what tools/studio.py builds")


def build(root: Path) -> dict[str, bytes]:
    """Return the files by name, built in an empty folder."""
    for source_name in ("package.json", "package-lock.json", ".npmrc", *SCRIPTS):
        shutil.copy(SOURCE / source_name, root / source_name)
    install = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run(install, cwd=root, check=True)
    options = ("--bundle", "--minify", "--format=esm", "--target=es2022", "--charset=utf8", "--legal-comments=none")
    bundle = [str(root / "node_modules" / ".bin" / "esbuild"), *SCRIPTS, *options, "--outdir=built"]
    subprocess.run(bundle, cwd=root, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    scripts = {name: (root / "built" / name).read_bytes() for name in SCRIPTS}
    # The bundler is not part of the bundle.
    modules = root / "node_modules"
    for name in ("esbuild", "@esbuild"):
        shutil.rmtree(modules / name, ignore_errors=True)
    licence_texts = licences(modules).partition("\n")[2]
    return {**scripts, "vendor.LICENSES.txt": (HEAD + licence_texts).encode()}


if __name__ == "__main__":
    main()
