"""Looks at an endpoint and chooses its mapping, by a few bounded queries; nothing is written.

The result is cached on this machine.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from condgraph.engine.bounds import check, within
from condgraph.engine.errors import DeadlineError, OptionError, ParseError, StoreError, StoreMissingError, numbered
from condgraph.engine.iris import RDF, XSD
from condgraph.engine.terms import GRAPH, INFERRED, is_iri, number_type
from condgraph.engine.values import NO_UNIT, Kind, collapse
from condgraph.loaders.rdf.inference import INVERSE, MAX_AXIOMS, SUBPROPERTY, Inference, rules_of
from condgraph.loaders.rdf.structures import GRAPHS, SINGLETON, VALUE
from condgraph.sparql.client import MAX_PAUSE, MAX_TRIES, BusyEndpointError
from condgraph.sparql.dialect import DIALECTS, cut
from condgraph.sparql.native.fetch import ONTOLOGY, anywhere, datatype_of, either, is_text, listed
from condgraph.sparql.native.mapping import (
    LABEL,
    NAMING,
    NODES,
    NUMBERS,
    OWN,
    PRESETS,
    SINGLETONS,
    SUBCLASS,
    TYPE,
    Counts,
    Mapping,
    Predicate,
    axiom_of,
    fitted,
    is_unknown,
    loads,
    node_of,
    preset_hides,
    preset_of,
    read_mapping,
    renamed,
)
from condgraph.vectors.stored import cache_folder

if TYPE_CHECKING:
    from condgraph.sparql.client import Endpoint

#: The most seconds of a query over all triples, of any other query, and of a whole look.
SCAN, STEP, MAX_SECONDS = 8.0, 5.0, 28.0
#: The most queries of a look, and the most triples for which the kinds of all values are counted; on a slow endpoint, a
#: twentieth of these.
MAX_QUERIES: Final = 60
COUNTABLE: Final = 2_000_000
#: How many triples are sampled if counting all takes too long; how many triples of a predicate are sampled for kinds of values;
#: and how many predicates one such query covers.
SAMPLE: Final = 200_000
SHARE: Final = 1_000
TOGETHER: Final = 100
#: The most named graphs, and the most of their triples, that are looked at.
MAX_GRAPHS: Final = 50
#: The most queries for such samples, and for predicates of class members; and the most members of each class.
MAX_SAMPLES: Final = 12
MAX_STRATA: Final = 5
MEMBERS: Final = 20
#: The rows requested to see whether the endpoint has a limit; many limit results to 10,000.
ROWS: Final = 10_001
MAX_CLASSES: Final = 10_000
#: For how many seconds a cached look counts as current.
MAX_AGE: Final = 24 * 3600.0
_LANGUAGES: Final = 12
_TOGETHER: Final = 200
_LOCAL: Final = re.compile(r"[^/#:]+$").search
_CLAIM: Final = re.compile(r"(.+)/prop/P\d+").fullmatch
_FORM: Final = re.compile(r"(.+/prop)/(statement|qualifier)/(P\d+)").fullmatch
_LANG: Final = RDF + "langString"
_DURATIONS: Final = frozenset(XSD + name for name in ("duration", "dayTimeDuration", "yearMonthDuration"))
_TIMES: Final = frozenset(XSD + name for name in ("date", "gYear", "gYearMonth", "dateTime", "dateTimeStamp"))
#: Types of Wikibase's properties.
_TYPES: Final = {
    "WikibaseItem": Kind.ENTITY, "WikibaseProperty": Kind.ENTITY, "Quantity": Kind.QUANTITY, "Time": Kind.TIME,
}  # fmt: skip


class Look:
    """One look at an endpoint. `said` is the content of a mapping file."""

    def __init__(self, endpoint: Endpoint, content: dict[str, Any]) -> None:
        self._endpoint, self._content, self._preset = endpoint, content, preset_of(content)
        self._graphs: tuple[str, ...] = tuple(content.get("graphs", ()))
        self._language = content.get("languages", ["en"])[0].lower()
        #: Nodes that stand for statements because the file says so; and whether named graphs are read apart.
        self._declared: tuple[str, ...] = tuple(content.get("statements", ()))
        self._apart = False
        #: Types of nodes on the paths of presets.
        self._node_types: set[str] = set()
        #: How many queries were asked, and how many of them failed to answer in time.
        self.queries = self._missed = 0
        self._notes: list[str] = []
        self._types: dict[str, dict[str, str]] = {}
        self._texts: dict[str, tuple[str, ...]] = {}
        #: Whether statements are those of a Wikibase, whose other predicates are of no use.
        self._claims = False
        self._until = time.monotonic() + MAX_SECONDS
        #: Whether something was left out for lack of time.
        self.cut = False

    def _ask(self, text: str, seconds: float | None = None, *, needed: bool = False) -> list[Any] | None:
        """Return the rows of a query, or None if it does not end in time or the endpoint cannot run it.

        A `needed` query is asked even if the look has no time left. Pauses that a busy endpoint asks for do not count.
        """
        seconds = STEP if seconds is None else seconds
        remaining = seconds if needed else self._until - time.monotonic()
        if remaining <= 0:
            self.cut = True
            return None
        self.queries += 1
        for attempt in range(MAX_TRIES):
            try:
                with within(min(seconds, remaining)):
                    return list(self._endpoint.query(text, graphs=self._graphs))  # type: ignore[arg-type]
            except (DeadlineError, ParseError):
                check()
                self._missed += 1
                return None
            except BusyEndpointError as error:
                pause = seconds if error.seconds is None else error.seconds
                if attempt == MAX_TRIES - 1 or pause > MAX_PAUSE:
                    raise
                end = time.monotonic() + pause
                self._until += pause
                while (pause_left := end - time.monotonic()) > 0:
                    check()
                    time.sleep(min(pause_left, 0.05))
        raise AssertionError("unreachable")

    def mapping(self) -> Mapping:
        """Return the mapping of the endpoint; raise `StoreMissingError` if it has no triples."""
        base = self._base()
        shape = self._content.get("shape", "wikibase" if base else "plain")
        if shape == "wikibase" and not base:
            raise OptionError("there is no statement of Wikibase", hint='shape = "plain"')
        if shape == "wikibase" and self._content.get("infer"):
            raise OptionError("infer in a mapping file is for the shape plain", hint="properties of Wikibase have no axioms of OWL")
        if "shape" not in self._content:
            why = f"its statements have ranks, below {base}" if base else "there is no statement of Wikibase"
            self._notes.append(f"taken as {shape}: {why}")
        if shape == "wikibase" and self._preset:
            raise OptionError("preset in a mapping file is for the shape plain", hint="a Wikibase has names of its own")
        if shape == "wikibase" and self._declared:
            raise OptionError(
                "statements in a mapping file is for the shape plain", hint="statements of Wikibase have nodes of their own"
            )
        self._claims = shape == "wikibase"
        self._apart = GRAPHS in self._declared and self._graphs_are_apart()
        rows, complete = self._counted()
        # That has a note of its own.
        self._missed = 0
        if not rows:
            raise StoreMissingError(f"there is nothing at {self._endpoint.query_url}", hint="load something first, or name graphs")
        counts, self._types = _tally(rows), _datatypes(rows)
        if shape == "plain":
            self._fit(counts)
        self._texts = self._text_languages() if complete else {}
        naming = tuple(self._content.get("labels", NAMING))
        used = [iri for iri in naming if iri in counts or not complete][: 1 if shape == "wikibase" else None]
        languages = tuple(tag.lower() for tag in self._content.get("languages", ())) or self._languages(used[:1] or [LABEL])
        node_kinds = (name for name, node in NODES.items() if node.own and node.own[0] in counts and shape == "plain")
        mapping = Mapping(
            shape=shape, languages=languages, labels=naming, names=self._content.get("names", "iri"), graphs=self._graphs,
            base=base if shape == "wikibase" else "", whole=complete, statements=(*node_kinds, *self._declared), apart=self._apart,
            infer=tuple(self._content.get("infer", ())), axioms=self._axioms(),
            triples=sum(row["n"] for row in rows), rows=self._most_rows(sum(row["n"] for row in rows), complete), at=time.time(),
        )  # fmt: skip
        mapping = self._wikibase(mapping, counts) if shape == "wikibase" else self._plain(mapping, counts)
        if mapping.names == "local":
            mapping = replace(mapping, namespaces=self._namespaces())
        if self.cut:
            self._notes.append(f"what was not asked within {MAX_SECONDS:.0f} s was left out: some names, classes or units")
        if shape == "plain":
            mapping = renamed(mapping, preset_hides(self._preset, mapping, self._node_types))
            missed_before = self._missed
            if mapping.hidden:
                self._notes.append(
                    f"{len(mapping.hidden)} predicates and classes are hidden: nodes that only these have are left out"
                )
            if "predicate" not in self._content:
                self._propose_presets(mapping)
            self._propose([row["p"] for row in rows if row["t"] == "_" and row["p"] not in (SUBCLASS, *mapping.hidden)])
            self._missed = missed_before
        if RDF + "first" in counts:
            self._notes.append("members of lists are not read: a list is its nodes")
        if self._missed:
            self._notes.append(
                f"{self._missed} of {self.queries} queries about names and classes returned nothing in time: some are missing"
            )
        return replace(mapping, notes=tuple(self._notes))

    def _fit(self, counted: dict[str, Counts]) -> None:
        """Take from the presets what the triples have."""
        declared = "statements" in self._content
        self._content = fitted(self._content, self._preset, counted)
        if (paths := self._content.get("statements", ())) and not declared:
            terms = {"s": "?s", "p": "?p", "o": "?o"}
            nodes = ((index, self._in(f"{node_of(text).patterns % terms} .")) for index, text in enumerate(paths))
            typed = f"OPTIONAL {{ ?f <{TYPE}> ?t }}"
            parts = (f"SELECT ({index} AS ?n) ?t WHERE {{ {node} {typed} }} LIMIT {MEMBERS}" for index, node in nodes)
            rows = self._ask(f"SELECT ?n ?t WHERE {{ {either(parts)} }}", SCAN)
            self._node_types = {row["t"].value for row in rows or () if row["t"] is not None}
            present = range(len(paths)) if rows is None else {int(row["n"].value) for row in rows}
            self._content["statements"] = [text for index, text in enumerate(paths) if index in present]
        self._declared = tuple(self._content.get("statements", ()))

    def _propose_presets(self, mapping: Mapping) -> None:
        """Note the presets of vocabularies that the endpoint uses."""
        iris = (*(predicate.iri for predicate in mapping.predicates), *mapping.concepts)
        for name in PRESETS:
            is_of = re.compile(rf"http://www\.w3\.org/.*\b{name}(/core)?#").match
            if name not in self._content.get("preset", ()) and (count := sum(map(bool, map(is_of, iris)))):
                subject = numbered(count, "predicate or class is", "predicates and classes are")
                self._notes.append(f"{subject} of {name.upper()}: preset = [{name!r}] reads what is common of it")

    def _in(self, patterns: str) -> str:
        """Return patterns within a single graph, whichever it is."""
        return anywhere(patterns, apart=self._apart)

    @property
    def _any(self) -> str:
        return self._in("?s ?p ?o")

    @property
    def _kind(self) -> str:
        return _KIND % (f'IF({is_unknown("?o")}, "?", "")' if self._claims else 'IF(isBlank(?o), "_", "")')

    # -- what there is -----------------------------------------------------------------------------

    def _base(self) -> str:
        rows = self._ask(f"SELECT ?p WHERE {{ ?f <{ONTOLOGY}rank> ?r . ?s ?p ?f }} LIMIT 20")
        if rows is None and "shape" not in self._content:
            raise StoreError(
                f"{self._endpoint.query_url} does not tell in time whether it is a Wikibase",
                hint='a mapping file may say it: shape = "plain"',
            )
        for row in rows or ():
            if (match := _CLAIM(row["p"].value)) is not None:
                return match[1]
        return ""

    def _counted(self) -> tuple[list[dict[str, Any]], bool]:
        """Return how often each predicate has nodes and literals of each datatype, and whether all triples were counted.

        Each row has an example of how numbers are written.
        """
        start = time.monotonic()
        totals = self._totals(f"{{ {self._any} }}", SCAN)
        # Counting kinds takes several times as long.
        quick = time.monotonic() - start < SCAN / 5
        if totals is not None and sum(totals.values()) <= (COUNTABLE if quick else COUNTABLE // 20):
            rows = self._ask(f"SELECT ?p ?t (COUNT(*) AS ?n) WHERE {{ {self._any} {self._kind} }} GROUP BY ?p ?t", SCAN)
            if rows is not None:
                return _counts(rows), True
        complete = totals is not None
        if totals is None:
            totals = self._sampled()
        sampled = {iri: number for iri, number in totals.items() if not self._claims or _FORM(iri)}
        kinds = self._kinds(sampled)
        known, unknown = {row["p"] for row in kinds}, 0
        for iri, number in totals.items():
            if iri not in sampled:
                kinds.append({"p": iri, "t": "", "n": number, "x": ""})
            elif iri not in known:
                # Its kind is unknown, so it counts as both and programs may use it as either.
                unknown += 1
                kinds += [{"p": iri, "t": datatype, "n": number, "x": ""} for datatype in ("", XSD + "string")]
        scope = f"all {len(totals):,} predicates were counted" if complete else f"{len(totals):,} predicates were found by samples"
        unknown_note = f"; of {unknown:,} predicates the kinds are not known" if unknown else ""
        self._notes.append(f"{scope}; the kinds of their values are those of at most {SHARE:,} triples of each{unknown_note}")
        return kinds, False

    def _text_languages(self) -> dict[str, tuple[str, ...]]:
        """Return the languages of texts, for predicates with no other literals, so that their texts can be looked up.

        Predicates with texts whose white space is folded are left out; if it takes too long, all are.
        """
        missed = self._missed
        rows = self._ask(f"SELECT DISTINCT ?p ?t WHERE {{ {self._any} FILTER(isLiteral(?o)) {TEXT_LANGUAGE} }}", SCAN)
        self._missed = missed
        return text_languages(rows or ())

    def _totals(self, inner: str, seconds: float) -> dict[str, int] | None:
        rows = self._ask(f"SELECT ?p (COUNT(*) AS ?n) WHERE {inner} GROUP BY ?p", seconds)
        return None if rows is None else {row["p"].value: int(row["n"].value) for row in rows if row["p"] is not None}

    def _sampled(self) -> dict[str, int]:
        """Return the predicates of a part of the triples, of some members of each class, and those that are declared."""
        # A busy endpoint may still be running the query before, so the sample gets smaller.
        sizes = (SAMPLE, SAMPLE // 10)
        samples = (self._totals(f"{{ {{ SELECT ?p WHERE {{ {self._any} }} LIMIT {size} }} }}", STEP) for size in sizes)
        totals = next((sample for sample in samples if sample is not None), None)
        if totals is None:
            raise StoreError(
                f"{self._endpoint.query_url} gives no sample of its triples in time", hint="a mapping file may name graphs"
            )
        declared = f"VALUES ?k {{ {listed(_DECLARED)} }} {self._in(f'?p <{TYPE}> ?k .')}"
        for row in self._ask(f"SELECT ?p WHERE {{ {declared} }} LIMIT {MAX_CLASSES}") or ():
            if getattr(row["p"], "value", ""):
                totals.setdefault(row["p"].value, 1)
        parts = [f"SELECT ?s WHERE {{ {self._in(f'?s <{TYPE}> <{iri}> .')} }} LIMIT {MEMBERS}" for iri in self._all_classes]
        nodes = dict.fromkeys(
            row["s"].value
            for chunk in cut(parts[: 2 * _TOGETHER], _TOGETHER)
            for row in self._ask(f"SELECT ?s WHERE {{ {either(chunk)} }}") or ()
            if is_iri(getattr(row["s"], "value", ""))
        )
        for chunk in list(cut(nodes, 4 * _TOGETHER))[:MAX_STRATA]:
            for iri, number in (self._totals(f"{{ VALUES ?s {{ {listed(chunk)} }} {self._any} }}", STEP) or {}).items():
                totals.setdefault(iri, number)
        return totals

    def _kinds(self, totals: dict[str, int]) -> list[dict[str, Any]]:
        """Return rows as `_counts` does, with the kinds of predicates' values estimated from a sample of each."""
        estimates = []
        ordered = sorted((iri for iri in totals if is_iri(iri)), key=lambda iri: (-totals[iri], iri))
        for chunk in list(cut(ordered, TOGETHER))[:MAX_SAMPLES]:
            # A store may return nodes first, and nodes of unknown values in the order of their IRIs.
            known_filter = IS_KNOWN if self._claims else ""
            parts = (
                f"SELECT (<{iri}> AS ?p) ?o WHERE {{ {self._in(f'?s <{iri}> ?o .')} {known_filter} }} LIMIT {SHARE}"
                for iri in chunk
            )
            answer = self._ask(f"SELECT ?p ?t (COUNT(*) AS ?n) WHERE {{ {either(parts)} {self._kind} }} GROUP BY ?p ?t")
            rows = _counts(answer or [])
            sampled = Counter[str]()
            for row in rows:
                sampled[row["p"]] += row["n"]
            for row in rows:
                total = totals[row["p"]]
                estimates.append({**row, "n": max(1, round(row["n"] * total / sampled[row["p"]]))})
        return estimates

    def _most_rows(self, triples: int, whole: bool) -> int:
        """Return how many rows a result can certainly have, since an endpoint may have a limit that it does not report."""
        rows = self._ask(f"SELECT ?x WHERE {{ {self._any} BIND(1 AS ?x) }} LIMIT {ROWS}", needed=True)
        count = len(rows or ())
        if rows is not None and whole and count < min(triples, ROWS):
            self._notes.append(f"the endpoint gives at most {count:,} rows without a word: longer results are errors")
            return 0
        return count

    def _languages(self, labels: list[str]) -> tuple[str, ...]:
        sample = f"SELECT ?l WHERE {{ {self._in(f'?s <{labels[0]}> ?l .')} }} LIMIT 20000"
        text = f"SELECT ?t (COUNT(*) AS ?n) WHERE {{ {{ {sample} }} BIND(LANG(?l) AS ?t) }} GROUP BY ?t"
        counts: Counter[str] = Counter()
        for row in self._ask(text, needed=True) or ():
            if row["t"] is not None and row["t"].value:
                counts[row["t"].value.lower()] += int(row["n"].value)
        variants = [tag for tag in counts if tag.partition("-")[0] == self._language.partition("-")[0]]
        best = sorted({self._language, *variants}, key=lambda tag: (tag != self._language, tag))
        other_languages = [tag for tag, _ in counts.most_common() if tag not in best]
        if len(other_languages) > _LANGUAGES:
            self._notes.append(
                f"names are looked for in {', '.join(best)} and mul; {len(other_languages)} other languages are left out"
            )
            return (*best, "mul")
        return (*best, *other_languages)

    def _labels(self, iris: Iterable[str], labels: Iterable[str], languages: tuple[str, ...]) -> dict[str, str]:
        """Return the names of some nodes."""
        ranks = {iri: rank for rank, iri in enumerate(labels)}
        order = {tag: rank for rank, tag in enumerate((languages[0], *languages[1:]))}
        best: dict[str, tuple[tuple[int, int, str, str], str]] = {}
        # A class may be a blank node.
        for chunk in cut(filter(is_iri, iris), _TOGETHER):
            if self.queries >= MAX_QUERIES - 8:
                self._notes.append("some predicates and classes are called by their IRIs: there are too many")
                break
            # For two lists that meet in a triple, stores may read all triples.
            parts = (f"VALUES ?s {{ {listed(chunk)} }} {self._in(f'?s <{iri}> ?l .')} BIND(<{iri}> AS ?k)" for iri in ranks)
            text = f"SELECT ?s ?k ?l WHERE {{ {either(parts)} }}"
            # Without the names of predicates, few programs can be asked.
            for row in self._ask(text, SCAN, needed=True) or ():
                literal = row["l"]
                language = (getattr(literal, "language", None) or "").lower()
                if not hasattr(literal, "datatype") or not collapse(literal.value) or (language and language not in order):
                    continue
                variant = language.partition("-")[0] == languages[0].partition("-")[0]
                preference = 0 if language == languages[0] else 2 if not language else 1 if variant else 3 + order[language]
                rank = ranks[row["k"].value], preference, language, literal.value
                if row["s"].value not in best or rank < best[row["s"].value][0]:
                    best[row["s"].value] = rank, collapse(literal.value)
        return {iri: name for iri, (_, name) in best.items()}

    def _namespaces(self) -> tuple[str, ...]:
        rows = self._ask(f"SELECT DISTINCT ?s WHERE {{ {self._any} }} LIMIT 20000") or ()
        counts = Counter(iri[: match.start()] for row in rows if (match := _LOCAL(iri := row["s"].value)) and "://" in iri)
        return tuple(space for space, _ in counts.most_common(50))

    # -- plain -------------------------------------------------------------------------------------

    def _singletons(self, counted: dict[str, Counts]) -> set[str]:
        """Return the singleton properties. The counts of their triples are added to the properties that they stand for."""
        rows = self._ask(f"SELECT ?f ?p WHERE {{ {self._in(f'?f <{SINGLETON}> ?p .')} }} LIMIT {SAMPLE + 1}", SCAN)
        if rows is None or len(rows) > SAMPLE:
            raise OptionError(
                f"{self._endpoint.query_url} has more singleton properties than a mapping can take", hint="load the data instead"
            )
        for row in rows:
            for key, count in counted.get(row["f"].value, {}).items():
                counts = counted.setdefault(row["p"].value, {})
                counts[key] = counts.get(key, 0) + count
        return {row["f"].value for row in rows}

    def _graphs_are_apart(self) -> bool:
        """Tell whether the default graph lacks the triples of named graphs; raise `OptionError` if there are no named graphs."""
        sample = f"SELECT ?s ?p ?o WHERE {{ GRAPH ?g {{ ?s ?p ?o }} }} LIMIT {MAX_GRAPHS}"
        rows = self._ask(f"SELECT ?x WHERE {{ {{ {sample} }} OPTIONAL {{ ?s ?p ?o BIND(1 AS ?x) }} }}", needed=True)
        if not rows:
            raise OptionError(f"{self._endpoint.query_url} shows no named graph", hint=f"leave {GRAPHS!r} out of statements")
        separate = any(row["x"] is None for row in rows)
        if separate:
            self._notes.append(
                "the default graph is apart from the named graphs: a chain of subclasses is followed within one graph"
            )
        return separate

    def _ends_of(self, name: str, counted: dict[str, Counts]) -> None:
        """Count the objects of the statements that nodes on a path stand for; raise `OptionError` if there are none."""
        node = node_of(name)
        if not node.predicate:
            return
        patterns = node.patterns % {"s": "?s", "p": "?p", "o": "?o"}
        where = f"BIND(<{node.predicate}> AS ?p) {patterns} . {self._kind}"
        rows = self._ask(f"SELECT ?p ?t (COUNT(*) AS ?n) WHERE {{ {where} }} GROUP BY ?p ?t")
        if rows == []:
            raise OptionError(f"statements in the mapping file names {name!r}, and no node is on this path")
        # Its kind is unknown, so it counts as both.
        either = {(Kind.ENTITY, NO_UNIT): 1, (Kind.TEXT, NO_UNIT): 1}
        for key, count in _tally(_counts(rows or [])).get(node.predicate, either).items():
            counts = counted.setdefault(node.predicate, {})
            counts[key] = counts.get(key, 0) + count

    def _propose(self, leading: list[str]) -> None:
        """Note what may stand for statements but is not declared: named graphs, and blank nodes that predicates lead to."""
        if GRAPHS not in self._declared and not self._graphs:
            first = f"SELECT ?g WHERE {{ GRAPH ?g {{ ?s ?p ?o }} }} LIMIT {SHARE}"
            sample = f"SELECT ?g WHERE {{ {{ {first} }} }} GROUP BY ?g LIMIT {MAX_GRAPHS}"
            names = [row["g"].value for row in self._ask(sample) or () if row["g"] is not None and is_iri(row["g"].value)]
            if names and (
                described := len(self._ask(f"SELECT DISTINCT ?g WHERE {{ VALUES ?g {{ {listed(names)} }} ?g ?p ?o }}") or ())
            ):
                self._notes.append(
                    f"triples speak of {described} of {len(names)} named graphs that were looked at: statements = [{GRAPHS!r}] "
                    "reads that as said about their statements"
                )
        declared = {first for name in self._declared if (node := node_of(name)).reached_by for first in node.reached_by[:1]}
        candidates = [iri for iri in dict.fromkeys(leading) if is_iri(iri) and iri not in declared and not iri.startswith(RDF)][
            :TOGETHER
        ]
        if not candidates:
            return
        parts = (f"SELECT (<{iri}> AS ?p) ?f WHERE {{ ?s <{iri}> ?f FILTER(isBlank(?f)) }} LIMIT {SHARE}" for iri in candidates)
        values = "BIND(isLiteral(?o) AS ?t)"
        text = f"SELECT ?p ?q ?t (COUNT(*) AS ?n) WHERE {{ {either(parts)} ?f ?q ?o {values} }} GROUP BY ?p ?q ?t"
        ends_of: dict[str, dict[str, bool]] = {}
        for row in self._ask(text) or ():
            if row["q"].value != TYPE and row["t"] is not None:
                ends = ends_of.setdefault(row["p"].value, {})
                ends[row["q"].value] = ends.get(row["q"].value, True) and row["t"].value in ("true", "1")
        for first, ends in sorted(ends_of.items()):
            if len(ends) > 1 and not ends.keys() & {RDF + "first", RDF + "rest"}:
                nodes = [iri for iri, literal in ends.items() if not literal]
                last = [VALUE] if VALUE in ends else nodes if len(nodes) == 1 else sorted(nodes or ends)
                paths = " or ".join(f'"{first} / {iri}"' for iri in last)
                self._notes.append(
                    f"blank nodes after <{first}> hold several facts: statements = [{paths}] reads each as a statement"
                )

    def _axioms(self) -> tuple[tuple[str, str, str], ...]:
        """Return the axioms of properties; raise `OptionError` if there are too many or the endpoint does not return them."""
        rules = rules_of(self._content.get("infer", ())) & {SUBPROPERTY, INVERSE}
        declared = set(filter(None, map(axiom_of, self._content.get("axioms", ()))))
        if not rules:
            return ()
        where = f"VALUES ?p {{ {listed(sorted(rules))} }} ?s ?p ?o FILTER(!isLiteral(?o))"
        rows = self._ask(f"SELECT DISTINCT ?s ?p ?o WHERE {{ {where} }} LIMIT {MAX_AXIOMS + 1}", SCAN)
        if rows is None or len(rows) > MAX_AXIOMS:
            problem = "does not give its axioms in time" if rows is None else f"has more than {MAX_AXIOMS:,} axioms of properties"
            raise OptionError(f"{self._endpoint.query_url} {problem}", hint="infer in the mapping file without them")
        return tuple(sorted(declared | {(_ident(row["s"]), row["p"].value, _ident(row["o"])) for row in rows}))

    def _inferred(self, inference: Inference, counted: dict[str, Counts]) -> dict[str, Counts]:
        """Return how many objects each predicate may have, including those of inferred statements."""
        objects = {iri: dict(counts) for iri, counts in counted.items()}
        for iri in inference.properties:
            for key, count in counted.get(iri, {}).items():
                for implied in inference.implied(iri, literal=key[0] is not Kind.ENTITY)[1:]:
                    counts = objects.setdefault(implied.property, {})
                    counts[key] = counts.get(key, 0) + count
        self._notes.extend(f"the axiom {axiom} is not followed: {why}" for axiom, why in inference.left.items())
        return objects

    def _plain(self, mapping: Mapping, counted: dict[str, Counts]) -> Mapping:
        nodes = {called: node_of(called) for called in mapping.statements}
        skipped = {TYPE, SUBCLASS, *(iri for node in nodes.values() for iri in node.own)}
        if SINGLETONS in nodes:
            skipped |= self._singletons(counted)
        for called in self._declared:
            self._ends_of(called, counted)
        counted = self._inferred(mapping.inference, counted) if mapping.infer else counted
        classes = self._all_classes
        iris = [iri for iri in sorted(counted, key=lambda iri: (-sum(counted[iri].values()), iri)) if iri not in skipped]
        used = [iri for iri in mapping.labels if iri in counted]
        names = self._labels(dict.fromkeys((*iris, *classes)), used, mapping.languages) if used else {}
        called = self._preset.get("predicate", {})
        taken = {"type": TYPE, "label": LABEL, **{called[iri]: iri for iri in iris if iri in called}}
        predicates = []
        for iri in iris:
            name = "label" if iri == LABEL else called.get(iri) or names.get(iri) or _local(iri)
            name = iri if taken.setdefault(name, iri) != iri else name
            values = {key: count for key, count in counted[iri].items() if key[0] is not Kind.ENTITY}
            relations = counted[iri].get((Kind.ENTITY, NO_UNIT), 0)
            predicates.append(Predicate(iri, name, relations, values, dict(self._types.get(iri, {})), self._texts.get(iri)))
        text: Counts = {(Kind.TEXT, NO_UNIT): 1}
        qualifiers = [Predicate(f"{OWN}{name}", name, 0, text) for name in ("language", "datatype")]
        if mapping.infer:
            qualifiers.append(Predicate(f"{OWN}{INFERRED}", INFERRED, 0, text))
        if mapping.statements:
            qualifiers += predicates
        if GRAPHS in mapping.statements:
            qualifiers.append(Predicate(f"{OWN}{GRAPH}", GRAPH, 1))
        local = mapping.names == "local"
        concepts = {iri: (names.get(iri) or (_local(iri) if local else iri), count) for iri, count in classes.items()}
        return replace(mapping, predicates=tuple(predicates), qualifiers=tuple(qualifiers), concepts=concepts)

    @cached_property
    def _all_classes(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        # A type of a node that stands for a statement is about the statement.
        nodes = (node_of(name).patterns.replace("?f", "?s") % {"s": "?a", "p": "?b", "o": "?d"} for name in self._declared)
        members = " ".join((self._in(f"?s <{TYPE}> ?c ."), *(f"FILTER(NOT EXISTS {{ {node} }})" for node in nodes)))
        text = f"SELECT ?c (COUNT(*) AS ?n) WHERE {{ {members} }} GROUP BY ?c LIMIT {MAX_CLASSES + 1}"
        for row in self._ask(text, SCAN) or ():
            if row["c"] is not None:
                counts[row["c"].value] = int(row["n"].value)
        for row in self._ask(f"SELECT ?c ?d WHERE {{ {self._in(f'?c <{SUBCLASS}> ?d .')} }} LIMIT {2 * MAX_CLASSES}", SCAN) or ():
            counts.setdefault(row["c"].value, 0)
            counts.setdefault(row["d"].value, 0)
        kinds = listed((RDF.replace("1999/02/22-rdf-syntax-ns#", "2000/01/rdf-schema#Class"), _OWL_CLASS))
        for row in (
            self._ask(f"SELECT ?c WHERE {{ VALUES ?k {{ {kinds} }} {self._in(f'?c <{TYPE}> ?k .')} }} LIMIT {MAX_CLASSES}") or ()
        ):
            counts.setdefault(row["c"].value, 0)
        counts = {iri: count for iri, count in counts.items() if is_iri(iri)}
        if len(counts) > MAX_CLASSES:
            self._notes.append(f"there are more than {MAX_CLASSES:,} classes; which of the others is a concept is not known")
        return counts

    # -- Wikibase ----------------------------------------------------------------------------------

    def _wikibase(self, mapping: Mapping, counted: dict[str, Counts]) -> Mapping:
        claim = f"{mapping.base}/prop/"
        forms: dict[str, dict[str, Counts]] = {"statement": {}, "qualifier": {}}
        for iri, kinds in counted.items():
            match = _FORM(iri)
            if match is not None and match[1] + "/" == claim:
                forms[match[2]][claim + match[3]] = dict(kinds)
        if not mapping.whole:
            text = f"SELECT ?c ?t WHERE {{ ?e <{ONTOLOGY}claim> ?c ; <{ONTOLOGY}propertyType> ?t }}"
            for row in self._ask(text, SCAN) or ():
                kind = _TYPES.get(row["t"].value.removeprefix(ONTOLOGY), Kind.TEXT)
                for of_form in forms.values():
                    of_form.setdefault(row["c"].value, {(kind, NO_UNIT): 1})
        iris = list(dict.fromkeys([*forms["statement"], *forms["qualifier"]]))
        entity = {iri: f"{mapping.base}/entity/{iri.removeprefix(claim)}" for iri in iris}
        names = self._labels(entity.values(), (LABEL,), mapping.languages)
        taken: dict[str, str] = {}
        for iri in iris:
            name = names.get(entity[iri]) or iri.removeprefix(claim)
            taken[iri] = iri if name in taken.values() else name
        units = self._units(claim, mapping.languages)
        all_units: dict[tuple[str, str], dict[str, str]] = {}
        for form, of_form in forms.items():
            for iri, kinds in of_form.items():
                count = kinds.pop((Kind.QUANTITY, NO_UNIT), 0)
                unit_counts = units.get((form, iri), {})
                for name, number in unit_counts.values():
                    kinds[Kind.QUANTITY, name] = kinds.get((Kind.QUANTITY, name), 0) + number
                without = count - sum(number for _, number in unit_counts.values())
                if without > 0:
                    kinds[Kind.QUANTITY, NO_UNIT] = kinds.get((Kind.QUANTITY, NO_UNIT), 0) + without
                if without <= 0 or not mapping.whole:
                    all_units[form, iri] = {unit: name for unit, (name, _) in unit_counts.items()}

        def predicates_of(form: str) -> tuple[Predicate, ...]:
            return tuple(
                Predicate(
                    *(iri, taken[iri], kinds.get((Kind.ENTITY, NO_UNIT), 0)),
                    {key: number for key, number in kinds.items() if key[0] is not Kind.ENTITY},
                    languages=self._texts.get(iri.replace("/prop/", "/prop/statement/")),
                    units=all_units.get((form, iri), {}),
                )
                for iri, kinds in sorted(forms[form].items())
            )

        return replace(
            mapping,
            predicates=predicates_of("statement"),
            qualifiers=predicates_of("qualifier"),
            concepts=self._items(claim, mapping.languages),
        )

    def _units(self, claim: str, languages: tuple[str, ...]) -> dict[tuple[str, str], dict[str, tuple[str, int]]]:
        """Return the units of properties and qualifiers, by their nodes: the name, and how many numbers have the unit."""
        text = f"SELECT ?k ?u (COUNT(*) AS ?n) WHERE {{ ?f ?k ?v . ?v <{ONTOLOGY}quantityUnit> ?u }} GROUP BY ?k ?u"
        rows = self._ask(text, SCAN) or []
        names = self._labels({row["u"].value for row in rows}, (LABEL,), languages)
        units: dict[tuple[str, str], dict[str, tuple[str, int]]] = {}
        for row in rows:
            form, is_value, number = row["k"].value.removeprefix(claim).partition("/value/")
            unit = row["u"].value
            if is_value and form in ("statement", "qualifier"):
                name = NO_UNIT if unit.endswith("/Q199") else names.get(unit) or unit.rpartition("/")[2]
                units.setdefault((form, claim + number), {})[unit] = name, int(row["n"].value)
        return units

    def _items(self, claim: str, languages: tuple[str, ...]) -> dict[str, tuple[str, int]]:
        """Return the commonest classes in a sample of a Wikibase, with their names."""
        inner = f"SELECT ?s ?c WHERE {{ ?s <{claim}P31> ?f . ?f <{claim}statement/P31> ?c }} LIMIT {SAMPLE}"
        rows = self._ask(f"SELECT ?c (COUNT(*) AS ?n) WHERE {{ {{ {inner} }} }} GROUP BY ?c", SCAN) or []
        counts = {row["c"].value: int(row["n"].value) for row in rows}
        inner = f"SELECT ?c ?d WHERE {{ ?c <{claim}P279> ?f . ?f <{claim}statement/P279> ?d }} LIMIT {SAMPLE}"
        for row in self._ask(inner, SCAN) or ():
            counts.setdefault(row["c"].value, 0)
            counts.setdefault(row["d"].value, 0)
        most = sorted(counts, key=lambda iri: (-counts[iri], iri))[:MAX_CLASSES]
        names = self._labels(most[: 20 * _TOGETHER], (LABEL,), languages)
        if len(most) < len(counts):
            self._notes.append(f"there are more than {MAX_CLASSES:,} classes; the others count as entities")
        return {iri: (names.get(iri, iri), counts[iri]) for iri in most}


_OWL_CLASS: Final = "http://www.w3.org/2002/07/owl#Class"
#: Classes of predicates.
_DECLARED: Final = (
    RDF + "Property",
    *(f"http://www.w3.org/2002/07/owl#{name}" for name in ("ObjectProperty", "DatatypeProperty", "AnnotationProperty")),
)
#: Binds the kind of a value to ?t: its datatype, and an example of how numbers are written, which may suggest another one.
_MARK: Final = 'IF(!isNumeric(?o), "", IF(CONTAINS(UCASE(STR(?o)), "E"), "1e0", IF(CONTAINS(STR(?o), "."), "1.0", "1")))'
_KIND: Final = f'BIND(IF(isLiteral(?o), CONCAT(STR({datatype_of("?o")}), " ", {_MARK}), %s) AS ?t)'
#: Tests that an object of a Wikibase is known.
IS_KNOWN: Final = f"FILTER(isLiteral(?o) || !({is_unknown('?o')}))"
#: White space that is folded in texts: at an end, several in a row, or other than U+0020.
_SPACES: Final = "^ | $|  |[^\\\\S ]|[\u000b\u000c\u001c-\u001f\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
#: Binds the language of a text to ?t; "?" for other literals and for texts with such white space; nothing for nodes.
TEXT_LANGUAGE: Final = f'BIND(IF({is_text("?o")} && !REGEX(STR(?o), "{_SPACES}"), LANG(?o), "?") AS ?t)'


def text_languages(rows: Iterable[Any]) -> dict[str, tuple[str, ...]]:
    """Return the languages of texts, for predicates that lead to nothing else; rows have a predicate and its `TEXT_LANGUAGE`."""
    languages: dict[str, set[str]] = {}
    for row in rows:
        languages.setdefault(row["p"].value, set()).add("?" if row["t"] is None else row["t"].value)
    return {iri: tuple(sorted(tags)) for iri, tags in languages.items() if "?" not in tags}


def numbers_of(mapping: Mapping, predicate: Predicate) -> tuple[str, Callable[[Iterable[Any]], Predicate | None]]:
    """Return the query of all values of a Wikibase predicate by kind and unit, and the function that reads its rows.

    The function returns the predicate with these counts instead of a sample's, or None if some number has no unit or one
    that the sample did not show.
    """
    number = predicate.iri.removeprefix(f"{mapping.base}/prop/")
    direct, node = (f"{mapping.base}/prop/statement/{form}{number}" for form in ("", "value/"))
    kind = _KIND % f'IF({is_unknown("?o")}, "?", "")'
    unit = f'?s <{node}> ?v . ?v <{ONTOLOGY}quantityUnit> ?u BIND(CONCAT("unit ", STR(?u)) AS ?t)'
    text = f"SELECT (<{direct}> AS ?p) ?t (COUNT(*) AS ?n) WHERE {{ {{ ?s <{direct}> ?o {kind} }} UNION {{ {unit} }} }} GROUP BY ?t"

    def read(rows: Iterable[Any]) -> Predicate | None:
        counted = _counts(rows)
        units = {row["x"]: row["n"] for row in counted if row["t"] == "unit"}
        values = _tally([row for row in counted if row["t"] != "unit"]).get(direct, {})
        if values.pop((Kind.QUANTITY, NO_UNIT), 0) != sum(units.values()) or not units.keys() <= predicate.units.keys():
            return None
        for iri, count in units.items():
            key = Kind.QUANTITY, predicate.units[iri]
            values[key] = values.get(key, 0) + count
        relations = values.pop((Kind.ENTITY, NO_UNIT), 0)
        return replace(predicate, relations=relations, values=values, units={iri: predicate.units[iri] for iri in units})

    return text, read


def _counts(rows: Iterable[Any]) -> list[dict[str, Any]]:
    """Return rows of predicates, kinds and numbers, with the datatype as `t` and the example as `x`."""
    return [
        {"p": row["p"].value, "t": datatype, "n": int(row["n"].value), "x": written}
        for row in rows
        for datatype, _, written in [("" if row["t"] is None else row["t"].value).partition(" ")]
        if row["p"] is not None and row["t"] is not None
    ]


def _tally(rows: list[dict[str, Any]]) -> dict[str, Counts]:
    """Return how many objects each predicate has of each kind."""
    counts_of: dict[str, Counts] = {}
    for row in rows:
        key = kind_of(row["t"]), NO_UNIT
        if row["t"] in _DURATIONS:
            # By the usual unit; a duration of only months is in months.
            key = Kind.QUANTITY, "second"
        counts = counts_of.setdefault(row["p"], {})
        counts[key] = counts.get(key, 0) + row["n"]
    return counts_of


def _datatypes(rows: list[dict[str, Any]]) -> dict[str, dict[str, str]]:
    """Return the commonest datatype of each predicate's literals whose text suggests another one, by how they are written."""
    most: dict[tuple[str, str], tuple[int, str]] = {}
    for row in rows:
        kind, datatype = kind_of(row["t"]), row["t"]
        if kind in (Kind.ENTITY, Kind.UNKNOWN) or datatype == _LANG:
            continue
        suggested = number_type(row["x"]) if datatype in NUMBERS else datatype if kind is Kind.TIME else XSD + "string"
        most[row["p"], suggested] = max(most.get((row["p"], suggested), (0, "")), (row["n"], datatype))
    datatypes: dict[str, dict[str, str]] = {}
    for (predicate, suggested), (_, datatype) in most.items():
        if suggested != datatype:
            datatypes.setdefault(predicate, {})[suggested] = datatype
    return datatypes


def kind_of(datatype: str) -> Kind:
    """Return the kind of values of a datatype; "" stands for nodes, `_` for blank ones, `?` for those of unknown values."""
    if datatype in ("", "_", "?"):
        return Kind.UNKNOWN if datatype == "?" else Kind.ENTITY
    return Kind.QUANTITY if datatype in NUMBERS or datatype in _DURATIONS else Kind.TIME if datatype in _TIMES else Kind.TEXT


def _ident(node: Any) -> str:
    return str(node) if str(node).startswith("_:") else str(node.value)


def _local(iri: str) -> str:
    match = _LOCAL(iri)
    return match.group() if match else iri


# -- cache -------------------------------------------------------------------------------------------


def looked(endpoint: Endpoint, file: str | os.PathLike[str] | None, *, fresh: bool = False) -> Mapping:
    """Return the mapping of an endpoint, from this machine's cache if it is at most a day old, else by a new look.

    `file` is the path of a mapping file.
    """
    content = {} if file is None else read_mapping(file)
    settings = {key: value for key, value in content.items() if key not in ("predicate", "hide", "times")}
    cache_file = _place(endpoint.query_url, settings)
    if not fresh:
        with suppress(OSError, ValueError, TypeError, KeyError):
            mapping = loads(cache_file.read_text("utf-8"))
            if 0 <= time.time() - mapping.at <= MAX_AGE:
                # Otherwise the first query would be written for a different store, since no reply has identified it yet.
                endpoint.dialect = DIALECTS[mapping.dialect]
                return renamed(mapping, content)
    look = Look(endpoint, content)
    mapping = replace(look.mapping(), dialect=endpoint.dialect.name)
    if look.cut:
        # The next look may have enough time for it.
        return renamed(mapping, content)
    with suppress(OSError):
        # A folder that cannot be written to only costs time.
        cache_file.parent.mkdir(parents=True, exist_ok=True)
        partial = cache_file.with_suffix(f".{os.getpid()}")
        partial.write_text(mapping.dumps(), "utf-8")
        partial.replace(cache_file)
    return renamed(mapping, content)


def _place(url: str, settings: dict[str, Any]) -> Path:
    text = f"{url}\n{json.dumps(settings, sort_keys=True)}"
    return cache_folder() / "endpoints" / f"{blake2b(text.encode(), digest_size=12).hexdigest()}.json"
