"""Copy YASGUI into the package, from the npm registry: its script, its styles, and the licences of all packages in
them.

    python tools/yasgui.py

Needs `npm`. The version is fixed here, and the archive's checksum is compared. Changes of the files: references to
source maps and advertising addresses in the list of prefixes are removed; its DOMPurify becomes a global name, for
`trusted.js`.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGE, VERSION = "@zazuko/yasgui", "4.6.2"
INTEGRITY = "sha512-Zw45KdPoAE1KRaAoxIHdQqeJxvaVG1oQdntw0hy0ktX35Zu8ZccuOLrXCLwR+GU+0xMzLw8Mjw6BkSZV2vUuQw=="
STATIC = Path(__file__).parents[1] / "condgraph" / "endpoint" / "static"
#: The place in the script where DOMPurify has been created.
HOOK = "purify.addHook("
#: Entries of the prefix list that are not vocabularies.
ADVERTISING = re.compile(r"https?://(?:onlyfans\.com|namso-gen\.com|es\.scribd\.com)[^`\"']*")


#: The licence text for packages that state "MIT" but include no text.
MIT = """MIT License

Copyright (c) {author}

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files
(the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge,
publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do
so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE
FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN
CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE."""


def main() -> None:
    """Download, compare, and write the files."""
    if shutil.which("npm") is None:
        sys.exit("npm is not installed")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "package.json").write_text('{"private": true}', encoding="utf-8")
        npm = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", f"{PACKAGE}@{VERSION}"]
        subprocess.run(npm, cwd=root, check=True)
        locked = json.loads((root / "package-lock.json").read_text(encoding="utf-8"))["packages"][f"node_modules/{PACKAGE}"]
        if locked["integrity"] != INTEGRITY:
            sys.exit(f"{PACKAGE} {VERSION} has the checksum {locked['integrity']}, and not the one that is known")
        modules = root / "node_modules"
        build = modules / PACKAGE / "build"
        STATIC.mkdir(exist_ok=True)
        script = (build / "yasgui.min.js").read_text(encoding="utf-8")
        script = ADVERTISING.sub("urn:none", re.sub(r"\n//# sourceMappingURL=\S+\s*$", "\n", script))
        if script.count(HOOK) != 1:
            sys.exit("DOMPurify is not found in the script")
        script = script.replace(HOOK, f"globalThis.DOMPurify=purify,{HOOK}")
        (STATIC / "yasgui.min.js").write_text(script, encoding="utf-8")
        styles = (build / "yasgui.min.css").read_text(encoding="utf-8")
        (STATIC / "yasgui.min.css").write_text(re.sub(r"/\*# sourceMappingURL=\S+ \*/\s*$", "", styles), encoding="utf-8")
        (STATIC / "yasgui.LICENSES.txt").write_text(licences(modules), encoding="utf-8")


def licences(modules: Path) -> str:
    """Return the licences of all installed packages."""
    parts = [f"yasgui.min.js and yasgui.min.css are {PACKAGE} {VERSION}, built from the packages below.\n"]
    for manifest in sorted([*modules.glob("*/package.json"), *modules.glob("@*/*/package.json")]):
        record = json.loads(manifest.read_text(encoding="utf-8"))
        texts = sorted(path for path in manifest.parent.iterdir() if re.match(r"(?i)(licen[cs]e|copying|notice)", path.name))
        kind = record.get("license") or ", ".join(licence.get("type", "") for licence in record.get("licenses", []))
        author = record.get("author")
        author_name = author if isinstance(author, str) else (author or {}).get("name", "")
        head = f"{record['name']} {record['version']}: {kind}" + (f", by {author_name}" if author_name else "")
        body = "\n\n".join(path.read_text(encoding="utf-8", errors="replace").strip() for path in texts if path.is_file())
        if not body and kind == "MIT":
            body = MIT.format(author=author_name or "the authors")
        parts.append(f"{'-' * 100}\n{head}\n{'-' * 100}\n\n{body or '(The package has no text of its licence.)'}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    main()
