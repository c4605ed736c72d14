// Statements in words and in tables: cells that lead to their pages, sources and rows.

import { called, count, cut, el, fill, listed, number, visible, whole } from "./dom.js";
import { link } from "./state.js";

/** Statements of a table that are shown at once, and above which they are grouped at first. */
const SHOWN = 100, MANY = 40;

/** A cell as an element: entities lead to their pages. */
export function shown(cell) {
  if (!cell) return el("span", { class: "nothing" }, "–");
  if (cell.type === "entity") return el("a", { href: link("entity", { id: cell.id }), class: "entity", title: cut(cell.id, 400) }, cut(called(cell), 400));
  return el("span", { class: `cell ${cell.type}` }, whole(cell.text));
}

export const sources = (fact) => (fact.sources.length ? fact.sources.map((one, i) => [i ? "; " : "", listed([one.name]), one.row ? `, row ${one.row}` : ""]) : "no source");

/** Statements in groups with their numbers, by what the reader chooses; each is opened by a click. */
export function factGroups(facts, caption) {
  const concepts = new Map(facts.filter((one) => one.kind === "membership").map((one) => [one.subject.id, one.object.text]));
  const ways = { step: (one) => one.step?.name ?? "no step", predicate: (one) => one.predicate, concept: (one) => concepts.get(one.subject.id) ?? `no concept (${one.subject.kind})` };
  const by = el("select", { onchange: () => draw() }, ["nothing", ...Object.keys(ways)].map((value) => el("option", { value }, value))), place = el("div");
  const draw = () => fill(place, by.value === "nothing" ? factTable(facts, caption) : [...Map.groupBy(facts, ways[by.value])].sort(([, a], [, b]) => (a[0].step && by.value === "step" ? a[0].step.at - b[0].step.at : b.length - a.length)).map(([name, some]) => {
    const group = el("details", { class: "group", ontoggle: () => group.children.length > 1 || group.append(...factTable(some, cut(`${count(some.length, "statement")}: ${visible(name)}`, 200))) }, el("summary", {}, el("bdi", {}, visible(name)), " ", el("small", {}, number(some.length))));
    return group;
  }));
  if (facts.length > MANY) by.value = new Set(facts.map(ways.step)).size > 1 ? "step" : "predicate";
  draw();
  return [el("p", {}, el("label", {}, "List by ", by), facts.length > MANY ? ` ${caption}` : null), place];
}

/** Statements as a table, each with its qualifiers and its places in the sources. */
export function factTable(facts, caption) {
  const body = el("tbody"), more = el("button", { type: "button", onclick: () => rows() });
  let from = 0;
  const rows = () => {
    body.append(...facts.slice(from, from + SHOWN).map((fact) => el("tr", {},
      el("td", {}, shown(fact.subject)), el("td", {}, whole(fact.predicate)),
      el("td", {}, shown(fact.object), fact.raw ? el("small", {}, " written “", whole(fact.raw), "”") : null),
      el("td", {}, fact.qualifiers.map((one, i) => [i ? "; " : "", whole(one.key), ": ", shown(one.value)])),
      el("td", { class: "source" }, sources(fact)))));
    from += SHOWN;
    more.hidden = from >= facts.length;
    more.textContent = `Show more (${number(Math.max(0, facts.length - from))})`;
  };
  rows();
  return [el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, el("table", {},
    el("caption", {}, caption),
    el("thead", {}, el("tr", {}, ["Subject", "Predicate", "Object", "Qualifiers", "Source"].map((one) => el("th", { scope: "col" }, one)))), body)), more];
}

/** A statement in words. */
export const told = (fact) => el("p", {}, shown(fact.subject), " ", whole(fact.predicate), " ", shown(fact.object),
  fact.qualifiers.map((one) => [el("br"), whole(one.key), ": ", shown(one.value)]), el("br"), el("small", { class: "source" }, sources(fact)));
