// Statements in words and in tables: cells that lead to their pages, sources and rows.

import { called, cut, el, listed, number, whole } from "./dom.js";
import { link } from "./state.js";

/** Statements of a table that are shown at once. */
const SHOWN = 100;

/** A cell as an element: entities lead to their pages. */
export function shown(cell) {
  if (!cell) return el("span", { class: "nothing" }, "–");
  if (cell.type === "entity") return el("a", { href: link("entity", { id: cell.id }), class: "entity", title: cut(cell.id, 400) }, cut(called(cell), 400));
  return el("span", { class: `cell ${cell.type}` }, whole(cell.text));
}

export const sources = (fact) => (fact.sources.length ? fact.sources.map((one, i) => [i ? "; " : "", listed([one.name]), one.row ? `, row ${one.row}` : ""]) : "no source");

/** Statements as a table, each with its qualifiers and its places in the sources. */
export function factTable(facts, caption) {
  const body = el("tbody"), more = el("button", { type: "button", onclick: () => rows() });
  let from = 0;
  const rows = () => {
    body.append(...facts.slice(from, from + SHOWN).map((fact, at) => el("tr", { id: `fact-${from + at}` },
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
