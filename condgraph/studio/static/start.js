// The start page beside and below the editor: what is in the graph, its picture, and questions that it answers.

import { count, el, fill, listed, number, visible } from "./dom.js";
import { link, state } from "./state.js";

/** Names of a list that are shown at once. */
const SHOWN = 60;
/** Pixels below which the list of names is closed at first. */
const WIDE = 900;

/** A program with a name, for an editor that is empty. */
const program = (kind, name, relation) => {
  const text = JSON.stringify(name);
  if (kind === "concepts") return `FindAll() FilterConcept(${text}) QueryName()`;
  if (kind === "predicates") return relation ? `FindAll() Relate(${text}, forward) QueryName()` : `FindAll() QueryAttr(${text})`;
  return "";
};

/**
 * The parts of the page: `aside` lists names, `home` has questions and the picture. `insert` hears a name, a program with it for an
 * empty editor, and its kind. `read` fills both for the graph that is asked, when what it takes comes; `search` gives the questions
 * of a graph that is asked for them: the rest does not wait.
 */
export function contents(insert) {
  const lists = el("div", { class: "lists" });
  const filter = el("input", { type: "search", id: "contents-filter", "aria-label": "Only names with", placeholder: "Filter names", oninput: () => draw() });
  const aside = el("details", { class: "contents", open: innerWidth >= WIDE }, el("summary", {}, "What is in the graph"), filter, lists);
  const home = el("div", { class: "home" });
  let shown = null;

  const added = (kind, one) => el("button", {
    type: "button", class: "insert", "aria-label": `Insert ${visible(one.name)}`, title: "Insert into the editor", onclick: () => insert(one.name, program(kind, one.name, one.relation), { concepts: "concept", predicates: "predicate", sources: "source" }[kind]),
  }, "+");
  const browsed = (fields, name) => el("a", { href: link("browse", fields) }, el("bdi", {}, visible(name)));
  const rows = {
    concepts: (one) => [browsed({ c: one.name }, one.name), " ", el("small", {}, number(one.members))],
    tables: (one) => [browsed({ t: one.name }, one.name)],
    predicates: (one) => [el("bdi", { class: "predicate" }, visible(one.name)), " ", el("small", {}, number(one.statements), el("br"), listed(one.subject), " → ", listed(one.object))],
    sources: (one) => [el("bdi", {}, visible(one.name)), " ", el("small", {}, `${one.format}, ${number(one.statements)}`)],
    units: (one) => [el("bdi", {}, visible(one.name)), " ", el("small", {}, number(one.values))],
  };
  const titles = { concepts: "Concepts", tables: "Tables", predicates: "Predicates", sources: "Sources", units: "Units" };

  function draw() {
    const wanted = filter.value.trim().toLowerCase();
    fill(lists, Object.entries(titles).map(([kind, title]) => {
      const all = shown[kind].filter((one) => one.name.toLowerCase().includes(wanted)), rest = all.length - SHOWN, unlisted = shown.more[kind] ?? 0;
      if (!shown[kind].length) return null;
      return el("section", { "data-list": kind }, el("h2", {}, `${title} `, el("small", {}, number(shown[kind].length + unlisted))),
        el("ul", {}, all.slice(0, SHOWN).map((one) => el("li", {}, el("span", {}, rows[kind](one)), added(kind, one)))),
        rest > 0 ? el("p", {}, el("small", {}, `${number(rest)} more: filter, or see the schema.`)) : null,
        unlisted ? el("p", {}, el("small", {}, `${number(unlisted)} more are in the schema alone.`)) : null);
    }), shown.first ? el("section", { "data-list": "times" }, el("h2", {}, "Times"), el("p", {}, `${shown.first} to ${shown.last}`)) : null);
  }

  async function read(reading, search) {
    const graph = state.graph;
    aside.dataset.ready = "";
    fill(lists, el("p", {}, "Reading…"));
    fill(home);
    try {
      const found = await reading;
      if (graph !== state.graph) return;
      shown = found;
      draw();
      const known = el("div", {}, found.questions ? questions(found.questions) : el("p", {}, "Looking for questions that this graph answers…"));
      fill(home, summary(found), known, picture(found));
      if (!found.questions) search().then((all) => fill(known, questions(all.questions)), (error) => fill(known, el("p", { class: "warning" }, `No questions were found: ${error.message}`)));
    } catch (error) {
      if (graph !== state.graph) return;
      fill(lists, el("p", { class: "error" }, error.message, error.hint ? `; ${error.hint}` : ""));
    }
    aside.dataset.ready = "yes";
  }

  return { aside, home, read };
}

function summary({ counts, note }) {
  const named = ["entities", "concepts", "rows", "relations", "attributes"].filter((name) => counts[name]);
  return [el("p", { class: "totals" }, named.map((name) => `${number(counts[name])} ${name}`).join(" · ")), note ? el("p", { class: "warning" }, note) : null];
}

const questions = (found) => (!found.length ? null : el("section", { class: "questions" }, el("h2", {}, "Questions that this graph answers"),
  el("ul", {}, found.map((one) => el("li", {}, el("a", { href: link("ask", { l: "kopl", q: one.program, t: one.table }) }, one.about.map((part, at) => (at % 2 ? el("bdi", {}, visible(part)) : part))),
    el("br"), el("small", {}, one.sample.map((row, at) => [at ? "; " : "", listed(row, " | ")]), one.sample.length > 2 ? "; …" : ""))))));

/** The picture is an image: no text of the graph is read as HTML. */
function picture({ picture: svg, edges, predicates }) {
  if (!svg) return null;
  const relations = predicates.filter((one) => one.relation).length;
  return el("section", { class: "schema" }, el("h2", {}, "How it is connected"),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Picture of the schema" },
      el("img", { src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`, alt: `Kinds of entities and ${count(relations, "relation")} between them; the text below says the same` })),
    el("details", {}, el("summary", {}, "The picture as text"), el("ul", {}, edges.map(([start, predicate, end]) => el("li", {}, listed([start, predicate, end], " → "))))));
}
