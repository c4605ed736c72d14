"""A KoPL program in the form of the SPARQL that KQA Pro published for it, on condgraph's IRIs: the comparison for the
compiled query.

The forms are those of the paper's figures 8 and 9 and of the data set: one graph pattern, DISTINCT or
COUNT(DISTINCT), a UNION for Or, `ORDER BY ... LIMIT 1` for the Select functions (which gives one of several that
tie), value nodes as results.
"""

from __future__ import annotations

from typing import Any

from condgraph.engine.iris import date_of, year_of
from condgraph.engine.values import Kind, Quantity, Time, parse_quantity
from condgraph.sparql.compile.conditions import Target
from condgraph.sparql.layout import double, integer, string


class _Form:
    """Variables are numbered as they come."""

    def __init__(self, target: Target) -> None:
        self.iri, self.schema = target.names.predicate, target.schema
        self.count = 0

    def variable(self, prefix: str) -> str:
        self.count += 1
        return f"?{prefix}_{self.count}"

    def value(self, v: str, kind: str, text: str, operator: str, kinds: Any = None) -> str:
        """The patterns of a comparison, as the data set writes them."""
        if kind == "Str":
            entity = kinds and all(k is Kind.ENTITY for k, _ in kinds)
            return f"{v} <pred:{'name' if entity else 'value'}> {string(text)} ."
        if kind == "Num":
            quantity: Quantity = parse_quantity(text)
            term, literal, unit = "value", double(quantity.number), f"{v} <pred:unit> {string(quantity.unit)} . "
        else:
            time = Time.parse(text)
            unit = ""
            day = date_of(time)
            if day is not None:
                term, literal = "date", f'"{day}"^^<http://www.w3.org/2001/XMLSchema#date>'
            else:
                term, literal = "year", integer(year_of(time) or 0)
        if operator == "=":
            return f"{unit}{v} <pred:{term}> {literal} ."
        x = self.variable("v")
        return f"{unit}{v} <pred:{term}> {x} . FILTER({x} {operator} {literal})"

    def reading(self, v: str, text: str, kinds: Any) -> str:
        """A value of QueryAttrUnderCondition or QueryAttrQualifier: by the types that the key has."""
        found = {kind for kind, _ in kinds}
        for kind, name in ((Kind.TIME, "Year"), (Kind.QUANTITY, "Num")):
            if kind in found:
                try:
                    return self.value(v, name, text, "=")
                except ValueError:
                    pass
        return self.value(v, "Str", text, "=", kinds)

    def fact(self, h: str, r: str, t: str, key: str, q: str) -> str:
        return f"[ <pred:fact_h> {h} ; <pred:fact_r> {r} ; <pred:fact_t> {t} ] {self.iri(key)} {q} ."


def kqapro(program: list[dict[str, Any]], target: Target) -> str:
    """The SPARQL of a program in the data set's JSON form."""
    form = _Form(target)
    iri, schema = form.iri, form.schema

    def patterns(i: int, e: str) -> str:
        """The patterns of a step that locates entities, bound to `e`."""
        return located(i, e)[0]

    def located(i: int, e: str) -> tuple[str, tuple[str, str, str]]:
        """The same, with the fact that a qualifier step would look at."""
        step = program[i]
        function, texts, of = step["function"], step["inputs"], step["dependencies"]
        nothing = ("", "", "")
        if function == "Find":
            return f"{e} <pred:name> {string(texts[0])} .", nothing
        if function == "FindAll":
            return "", nothing
        if function == "FilterConcept":
            c = form.variable("c")
            before, fact = located(of[0], e)
            return f"{before} {e} <pred:instance_of> {c} . {c} <pred:name> {string(texts[0])} .", fact
        if function.startswith("Filter"):
            pv = form.variable("pv")
            test = form.value(pv, function[6:], texts[1], texts[2] if len(texts) > 2 else "=")
            return f"{patterns(of[0], e)} {e} {iri(texts[0])} {pv} . {test}", (e, iri(texts[0]), pv)
        if function.startswith("QFilter"):
            before, fact = located(of[0], e)
            q = form.variable("qpv")
            test = form.value(q, function[7:], texts[1], texts[2] if len(texts) > 2 else "=", schema.qualifier_kinds(texts[0]))
            return f"{before} {form.fact(*fact, texts[0], q)} {test}", fact
        if function == "Relate":
            other = form.variable("e")
            fact = (other, iri(texts[0]), e) if texts[1] == "forward" else (e, iri(texts[0]), other)
            return f"{patterns(of[0], other)} {fact[0]} {fact[1]} {fact[2]} .", fact
        if function == "And":
            return f"{patterns(of[0], e)} {patterns(of[1], e)}", nothing
        assert function == "Or", function
        return f"{{ {patterns(of[0], e)} }} UNION {{ {patterns(of[1], e)} }}", nothing

    def values(i: int) -> tuple[str, str]:
        """The patterns of a step that gives values, and their variable."""
        step = program[i]
        function, texts, of = step["function"], step["inputs"], step["dependencies"]
        if function == "QueryAttr":
            return f"{patterns(of[0], '?e')} ?e {iri(texts[0])} ?pv .", "?pv"
        if function == "QueryAttrUnderCondition":
            test = form.reading("?qpv", texts[2], schema.qualifier_kinds(texts[1]))
            key = iri(texts[0])
            return f"{patterns(of[0], '?e')} ?e {key} ?pv . {form.fact('?e', key, '?pv', texts[1], '?qpv')} {test}", "?pv"
        if function == "QueryAttrQualifier":
            key = iri(texts[0])
            test = form.reading("?pv", texts[1], schema.attribute_kinds(texts[0]))
            return f"{patterns(of[0], '?e')} ?e {key} ?pv . {test} {form.fact('?e', key, '?pv', texts[2], '?qpv')}", "?qpv"
        assert function == "QueryRelationQualifier", function
        key = iri(texts[0])
        both = f"{patterns(of[0], '?e_a')} {patterns(of[1], '?e_b')}"
        return f"{both} ?e_a {key} ?e_b . {form.fact('?e_a', key, '?e_b', texts[1], '?qpv')}", "?qpv"

    last = program[-1]
    function, texts, of = last["function"], last["inputs"], last["dependencies"]
    if function == "QueryName":
        return f"SELECT DISTINCT ?e WHERE {{ {patterns(of[0], '?e')} }}"
    if function == "Count":
        return f"SELECT (COUNT(DISTINCT ?e) AS ?count) WHERE {{ {patterns(of[0], '?e')} }}"
    if function == "QueryRelation":
        return f"SELECT DISTINCT ?p WHERE {{ {patterns(of[0], '?e_a')} {patterns(of[1], '?e_b')} ?e_a ?p ?e_b . }}"
    if function.startswith("Select"):
        sets = [patterns(one, "?e") for one in of]
        located_in = sets[0] if len(sets) == 1 else f"{{ {sets[0]} }} UNION {{ {sets[1]} }}"
        times = all(kind is Kind.TIME for kind, _ in schema.attribute_kinds(texts[0]))
        order = "DESC(?v)" if texts[1] in ("largest", "greater") else "?v"
        term = "year" if times else "value"
        return f"SELECT ?e WHERE {{ {located_in} ?e {iri(texts[0])} ?pv . ?pv <pred:{term}> ?v . }} ORDER BY {order} LIMIT 1"
    if function.startswith("Verify"):
        of_step = program[of[0]]
        found, v = values(of[0])
        kinds = None
        if of_step["function"].endswith("Qualifier"):
            kinds = schema.qualifier_kinds(of_step["inputs"][-1])
        return f"ASK {{ {found} {form.value(v, function[6:], texts[0], texts[1] if len(texts) > 1 else '=', kinds)} }}"
    found, v = values(len(program) - 1)
    return f"SELECT DISTINCT {v} WHERE {{ {found} }}"
