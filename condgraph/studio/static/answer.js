// An answer: its table, charts, evidence, the tree of its program, steps, and the queries it becomes.

import { file } from "./api.js";
import { drawable, drawChart } from "./charts.js";
import { count, el, fill, number, save, tabbed, visible, whole } from "./dom.js";
import { drawEvidence } from "./evidence.js";
import { shown } from "./facts.js";
import { NAMES, state } from "./state.js";
import { drawMap, placesIn } from "./map.js";
import { drawTree } from "./tree.js";

let last = "table";

/** An answer in `place`. `asked` is what was sent; `change` hears the text of a changed program. */
export function drawAnswer(place, answer, asked, change) {
  const tabs = [["table", `Answer (${number(answer.total)})`, (panel) => drawTable(panel, answer, asked)]];
  if (drawable(answer).length) tabs.push(["chart", "Chart", (panel) => drawChart(panel, answer)]);
  const places = placesIn(answer);
  if (places.length) tabs.push(["map", `Map (${number(places.length)})`, (panel) => drawMap(panel, places)]);
  tabs.push(["evidence", `Evidence (${number(answer.evidence.total)})`, (panel) => drawEvidence(panel, answer.evidence, answer.trace)]);
  if (["kopl", "llm_query"].includes(answer.language)) tabs.push(["tree", "Program", (panel) => drawTree(panel, answer, change)]);
  if (answer.trace.length) tabs.push(["steps", "Steps", (panel) => drawSteps(panel, answer.trace)]);
  if (answer.compiled.cypher || answer.compiled.sparql) tabs.push(["queries", "Cypher, SPARQL", (panel) => drawQueries(panel, answer.compiled)]);
  const made = tabbed("Parts of the answer", tabs.map(([id, label, make]) => [id, label, (panel) => (last = id, make(panel))]));
  made.element.addEventListener("click", (event) => {
    if (event.target.dataset?.tab) last = event.target.dataset.tab;
  });
  fill(place, el("p", { class: "summary" },
    `${count(answer.total, "answer")} in ${(answer.seconds ?? 0).toFixed(3)} s · ${NAMES[answer.language] ?? answer.language}`),
  made.element);
  made.show(last);
}

function drawTable(place, answer, asked) {
  const exporting = ["csv", "json", "arrow"].map((form) => el("button", { type: "button", "data-export": form, onclick: () => leave(form, answer, asked, said) }, form.toUpperCase()));
  const said = el("span", { role: "status" });
  let from = 0;
  const body = el("tbody"), more = el("button", { type: "button", onclick: () => rows() });
  const rows = () => {
    body.append(...answer.rows.slice(from, from + 200).map((row) => el("tr", {}, row.map((cell) => el("td", { class: typeof cell?.number === "number" ? "number" : "" }, shown(cell))))));
    from += 200;
    more.hidden = from >= answer.rows.length;
    more.textContent = `Show more (${number(Math.max(0, answer.rows.length - from))})`;
  };
  fill(place,
    answer.rows.length ? el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of the answer" }, el("table", { class: "answers" },
      el("thead", {}, el("tr", {}, answer.columns.map((one) => el("th", { scope: "col" }, whole(one))))), body)) : el("p", {}, "The answer is empty."),
    more, el("p", { class: "exports" }, "Export: ", exporting, " ", said));
  rows();
}

async function leave(form, answer, asked, said) {
  try {
    const blob = form === "json"
      ? new Blob([JSON.stringify(answer, null, 2)], { type: "application/json" })
      : await file("query", { program: answer.program, table: asked.table, language: answer.language, graph: state.graph, limit: asked.limit, format: form });
    save(`answer.${form}`, blob);
    said.textContent = `answer.${form} is saved${answer.total > answer.rows.length ? `: the first ${number(answer.rows.length)} of ${number(answer.total)}` : ""}.`;
  } catch (error) {
    said.textContent = error.message;
  }
}

function drawSteps(place, trace) {
  fill(place, el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Steps" }, el("table", {},
    el("caption", {}, "What each step gave"),
    el("thead", {}, el("tr", {}, ["Step", "Results", "Operator", "Some of them", "Note"].map((one) => el("th", { scope: "col" }, one)))),
    el("tbody", {}, trace.map((one) => el("tr", {},
      el("th", { scope: "row" }, one.function), el("td", { class: "number" }, number(one.size)), el("td", {}, one.operator),
      el("td", {}, one.sample.map((name, i) => [i ? ", " : "", el("bdi", {}, visible(name))]), one.size > one.sample.length ? ", …" : ""), el("td", {}, one.note)))))));
}

function drawQueries(place, compiled) {
  fill(place, Object.entries({ Cypher: compiled.cypher, SPARQL: compiled.sparql }).filter(([, text]) => text).map(([name, text]) => {
    const said = el("span", { role: "status" });
    const copy = async () => {
      try {
        await navigator.clipboard.writeText(text);
        said.textContent = "Copied.";
      } catch {
        said.textContent = "The browser does not allow it: mark the text and copy it.";
      }
    };
    return [el("h2", {}, name), el("p", {}, el("button", { type: "button", "data-copy": name, onclick: copy }, `Copy ${name}`), " ", said), el("pre", { tabindex: "0", "aria-label": name }, text)];
  }));
}
