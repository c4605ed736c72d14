"""The model that Neo4j's importer (Data Importer) saves: JSON that says which columns of CSV files
become which nodes and relationships. It has no data, and is refused with the way to them; read as
plain JSON it would become rows that mean nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from condgraph.engine.errors import FormatError
from condgraph.loaders.files import head_text, read_head

#: What such a file holds, in the versions that there are.
_PARTS: Final = re.compile(r'"(?:graphModel|mappingModel|graphSchemaRepresentation|graphMappingRepresentation)"\s*:')


def is_model(head: bytes) -> bool:
    """Whether a file that begins so is such a model."""
    text = head_text(head)
    return text is not None and text.lstrip()[:1] == "{" and '"dataModel"' in text and _PARTS.search(text) is not None


def refuse_models(paths: Iterable[Path]) -> None:
    """Raise `FormatError` for the first of some files that is a model, with what can be loaded."""
    for path in paths:
        if path.is_file() and is_model(read_head(path)):
            raise FormatError(
                "this is a model of Neo4j's importer: it says which CSV files become which nodes, and holds no data",
                file=str(path),
                hint="load the folder of these CSV files without it (join= says what refers to what; condgraph guess writes "
                "that down), or open the database that it was imported into: condgraph.open('bolt://...')",
            )
