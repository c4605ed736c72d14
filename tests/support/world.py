"""A small graph with one of everything, and programs that use every part of it: the first test of every store."""

from __future__ import annotations

import json

import condgraph
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Sourced, Statement, Subclass
from condgraph.engine.snapshot.readback import items as items_of
from condgraph.engine.values import UNKNOWN, Quantity, Time
from condgraph.graph import Graph

#: Names of a predicate and of an entity that break careless quoting.
ODD = "odd <name> `quoted` % _ \\u0060) DETACH DELETE n // } #"
QUOTES = "back`tick \\u0060 'quote' \"double\""


def items() -> list[Item]:
    """Return names that need quoting, every type of value, qualifiers, concepts, a key that is also a relation,
    repeated statements.
    """
    return [
        Entity("human", "human", EntityKind.CONCEPT),
        Entity("person", "person", EntityKind.CONCEPT),
        Subclass("human", "person"),
        Entity("a", "Ann"),
        Entity("b", "Bo"),
        Entity("b2", "Bo"),
        Entity("x", QUOTES),
        Member("a", "human"),
        Member("b", "person"),
        Statement("a", "knows", Ref("b"), (("since", Time.year(1999)), ("through", Ref("x")))),
        Statement("a", "knows", Ref("b2")),
        Statement("a", "knows", Ref("b2")),
        Statement("b", "through", Ref("x")),
        Statement("human", "knows", Ref("person")),
        Statement("b", ODD, Ref("x")),
        Statement("b", "name", Ref("a")),
        Statement("b", "IS", Ref("a")),
        Statement("a", "height", Quantity(1.7, "metre"), (("point in time", Time.day(2001, 2, 3)),)),
        Statement("b", "height", Quantity(1.9, "metre"), (("start time", Time.year(1990)), ("end time", UNKNOWN))),
        Statement("x", "height", Quantity(5, "foot")),
        Statement("a", "born", Time.day(1980, 5, 29), raw="29 May 1980"),
        Statement("b", "born", Time.year(-43)),
        Statement("b2", "born", UNKNOWN),
        Statement("x", "born", Time.parse("1979/1981")),
        Statement("a", "since", Time.year(2000)),
        Statement("x", "note", "long " * 3000),
        Statement("x", "note", "short"),
        Statement("x", "count", Quantity(12345678901234567890)),
        Statement("a", "count", Quantity(12345678901234567891)),
        Sourced(Statement("b", "count", Quantity(3)), (("world", 7), ("other", 0), ("world", 9))),
    ]


def world() -> Graph:
    """Return the graph in memory."""
    graph = condgraph.open()
    graph.add(items(), source="world")
    return graph


def contents(graph: Graph) -> set[str]:
    """Return everything in a graph, for comparison."""
    return set(map(repr, items_of(graph.current)))


PROGRAMS = [
    "Find(Ann) Relate(knows, forward) QueryName()",
    "Find(Bo) Relate(knows, backward) QueryName()",
    f"Find({json.dumps(QUOTES)}) Relate(through, backward) QueryName()",
    f"Find({json.dumps(QUOTES)}) Relate(through, backward) Count()",
    "Find(Ann) Relate(knows, forward) QFilterYear(since, 1999, =) QueryName()",
    "FindAll() FilterYear(since, 1900, >) QueryName()",
    "FindAll() FilterYear(since, 1900, >) Count()",
    f"Find(Bo) Relate({json.dumps(ODD)}, forward) QueryName()",
    "Find(Bo) Relate(IS, forward) QueryName()",
    f"Find(Ann) Relate(knows, forward) QFilterStr(through, {json.dumps(QUOTES)}) Count()",
    "FindAll() FilterConcept(person) QueryName()",
    "FindAll() FilterNum(height, 1.8 metre, >) QueryName()",
    "FindAll() FilterNum(height, 1.8 metre, !=) Count()",
    "FindAll() FilterNum(count, 12345678901234567890, >) QueryName()",
    "FindAll() FilterNum(count, 12345678901234567890, =) QueryName()",
    "FindAll() FilterYear(born, 1980, =) QueryName()",
    "FindAll() FilterYear(born, 1980, !=) QueryName()",
    "FindAll() FilterYear(born, 1900, <) QueryName()",
    "FindAll() FilterDate(born, 1980-05-29, =) QueryName()",
    "FindAll() FilterDate(born, 1980-05-29, !=) QueryName()",
    "FindAll() SelectAmong(height, largest)",
    "FindAll() SelectAmong(count, largest)",
    "FindAll() SelectAmong(born, smallest)",
    "Find(Ann) Find(Bo) SelectBetween(height, less)",
    "FindAll() QueryAttr(height)",
    "FindAll() QueryAttr(born)",
    "FindAll() QueryAttr(count)",
    "FindAll() QueryAttr(note)",
    "Find(Ann) QueryAttrUnderCondition(height, point in time, 2001)",
    "Find(Ann) QueryAttrQualifier(height, 1.7 metre, point in time)",
    "Find(Ann) Find(Bo) QueryRelationQualifier(knows, since)",
    "Find(Ann) Find(Bo) QueryRelationQualifier(knows, through)",
    "Find(Ann) Find(Bo) QueryRelation()",
    "Find(Bo) Find(Ann) QueryRelation()",
    "Find(Ann) QueryAttr(height) VerifyNum(1.7 metre, =)",
    "Find(Ann) QueryAttr(height) VerifyNum(1.7 metre, >)",
    "FindAll() QueryAttr(note) VerifyStr(short, !=)",
    "Find(Ann) Find(Bo) Or() Find(Bo) And() QueryName()",
    "Find(Ann) Find(Bo) Or() Find(Ann) Relate(knows, forward) Except() QueryName()",
    "FindAll() FindAll() FilterConcept(person) Except() Count()",
]
QUERIES = [
    "Query1: \"get_information(relation='height', tail_entity>'1.8 metre')\"",
    "Query1: \"get_information(relation='height')\"\nQuery2: \"max(set='output_of_query1')\"",
    "Query1: \"get_information(relation='count')\"\nQuery2: \"sum(set='output_of_query1')\"",
    "Query1: \"get_information(relation='knows', head_entity='Ann', key='since')\"",
    "Query1: \"get_information(relation='height', key='time', value>'1980')\"",
    "Query1: \"get_information(relation='knows', tail_entity='Bo')\"\nQuery2: \"set_negation(set='output_of_query1')\"",
    "Query1: \"get_information(relation='knows')\"\nQuery2: \"get_information(relation='height', head_entity='output_of_query1')\"",
]
