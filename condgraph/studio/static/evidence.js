// The evidence of an answer: a graph of its statements (Cytoscape), and the same as a list with every source and row.

import { cytoscape } from "./vendor.js";
import { called, colour, count, cut, el, fill, listed, number, onColours, whole } from "./dom.js";
import { link } from "./state.js";

/** A cell as an element: entities lead to their pages. */
export function shown(cell) {
  if (!cell) return el("span", { class: "nothing" }, "–");
  if (cell.type === "entity") return el("a", { href: link("entity", { id: cell.id }), class: "entity", title: cut(cell.id, 400) }, cut(called(cell), 400));
  return el("span", { class: `cell ${cell.type}` }, whole(cell.text));
}

export const sources = (fact) => (fact.sources.length ? fact.sources.map((one, i) => [i ? "; " : "", listed([one.name]), one.row ? `, row ${one.row}` : ""]) : "no source");

/** Statements as a table, each with its qualifiers and its places in the sources. */
export function factTable(facts, caption) {
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, el("table", {},
    el("caption", {}, caption),
    el("thead", {}, el("tr", {}, ["Subject", "Predicate", "Object", "Qualifiers", "Source"].map((one) => el("th", { scope: "col" }, one)))),
    el("tbody", {}, facts.map((fact, at) => el("tr", { id: `fact-${at}` },
      el("td", {}, shown(fact.subject)), el("td", {}, whole(fact.predicate)),
      el("td", {}, shown(fact.object), fact.raw ? el("small", {}, " written “", whole(fact.raw), "”") : null),
      el("td", {}, fact.qualifiers.map((one, i) => [i ? "; " : "", whole(one.key), ": ", shown(one.value)])),
      el("td", { class: "source" }, sources(fact)))))));
}

function elements(facts) {
  const nodes = new Map(), edges = [];
  const node = (cell, fact, at) => {
    const id = cell.type === "entity" ? `e:${cell.id}` : `v:${at}`;
    if (!nodes.has(id)) nodes.set(id, { data: { id, label: cell.type === "entity" ? cut(called(cell), 40) : cut(cell.text, 40), cell, kind: cell.type === "entity" ? cell.kind : "value" } });
    return id;
  };
  facts.forEach((fact, at) => {
    const source = node(fact.subject, fact, at), target = node(fact.object ?? { type: "text", text: "" }, fact, at);
    edges.push({ data: { id: `f:${at}`, source, target, label: cut(fact.predicate, 40), at } });
  });
  return [...nodes.values(), ...edges];
}

/** How circles and arrows look, in the colours of the page. */
const style = () => [
  { selector: "node", style: { label: "data(label)", "font-size": 12, color: colour("--text"), "background-color": colour("--entity"), "text-valign": "bottom", "text-margin-y": 4, width: 22, height: 22, "text-background-color": colour("--back"), "text-background-opacity": 0.8 } },
  { selector: "node[kind = 'value']", style: { shape: "round-rectangle", "background-color": colour("--value"), width: 14, height: 14 } },
  { selector: "node[kind = 'concept']", style: { shape: "diamond", "background-color": colour("--concept") } },
  { selector: "node[kind = 'row']", style: { shape: "rectangle", "background-color": colour("--row") } },
  { selector: "edge", style: { label: "data(label)", "font-size": 10, color: colour("--muted"), width: 1.5, "line-color": colour("--line"), "target-arrow-color": colour("--line"), "target-arrow-shape": "triangle", "curve-style": "bezier", "text-rotation": "autorotate", "text-background-color": colour("--back"), "text-background-opacity": 0.8 } },
  { selector: ":selected", style: { "line-color": colour("--accent"), "target-arrow-color": colour("--accent"), "background-color": colour("--accent"), width: 4 } },
  { selector: "node:selected", style: { width: 28, height: 28 } },
];

/** The picture, and beside it what is chosen. */
export function drawEvidence(place, evidence) {
  const { facts, total, named, searched } = evidence;
  if (!facts.length && !named.length && !searched.length) {
    fill(place, el("p", {}, "This answer says nothing of its evidence: queries in a store's own language have none."));
    return;
  }
  const picture = el("div", { class: "picture", role: "img", "aria-label": `Graph of ${facts.length} statements; the list below says the same` });
  const chosen = el("div", { class: "chosen", "aria-live": "polite" }, "Choose a circle or an arrow: it is told here.");
  fill(place,
    facts.length ? el("div", { class: "evidence" }, picture, chosen) : null,
    total > facts.length ? el("p", { class: "warning" }, `${number(total - facts.length)} more statements are not shown.`) : null,
    facts.length ? factTable(facts, `${count(total, "statement")} that the answer rests on`) : null,
    named.length ? el("p", {}, "Found by name, or as one of all: ", named.map((one, i) => [i ? ", " : "", shown(one.entity)])) : null,
    searched.length ? [el("h3", {}, "Looked through"), el("ul", {}, searched.map((one) => el("li", {}, whole(one))))] : null);
  if (!facts.length) return;
  const graph = cytoscape({
    container: picture, elements: elements(facts), maxZoom: 3,
    layout: { name: facts.length > 60 ? "concentric" : "cose", animate: false, padding: 30, nodeDimensionsIncludeLabels: true },
    style: style(),
  });
  graph.on("tap", "edge", (event) => {
    const at = event.target.data("at");
    fill(chosen, told(facts[at]));
  });
  graph.on("tap", "node", (event) => {
    const { cell, id } = event.target.data();
    const own = facts.filter((fact, at) => fact.subject.id === cell.id || (fact.object?.id ?? `v:${at}`) === (cell.id ?? id));
    fill(chosen, el("p", {}, el("strong", {}, shown(cell))), el("ul", {}, own.map((fact) => el("li", {}, told(fact)))));
  });
  onColours(picture, () => graph.style(style()));
  picture.graph = graph; // tests, and whoever is curious on the console
}

const told = (fact) => el("p", {}, shown(fact.subject), " ", whole(fact.predicate), " ", shown(fact.object),
  fact.qualifiers.map((one) => [el("br"), whole(one.key), ": ", shown(one.value)]), el("br"), el("small", { class: "source" }, sources(fact)));
