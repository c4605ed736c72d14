// Work that is kept, in this browser alone: what was asked, by name, with stars and notes; and files of it.

import { count, cut, el, fill, save } from "./dom.js";
import { link, NAMES, state } from "./state.js";

const KEY = "condgraph.history";
/** Questions without a star, a name or a note that are kept, and rows and columns of each answer. */
const MOST = 100, ROWS = 10, COLUMNS = 8;

/** Questions that were asked, the newest first: `{text, table, language, graph, when, total, sample, name, star, note}`. */
export function past() {
  try {
    const found = JSON.parse(localStorage.getItem(KEY));
    return Array.isArray(found) ? found.filter((one) => typeof one?.text === "string" && typeof one?.language === "string") : [];
  } catch {
    return [];
  }
}

const same = (one, other) => one.text === other.text && (one.table ?? "") === (other.table ?? "") && one.language === other.language && (one.graph ?? "") === (other.graph ?? "");
const valued = (one) => Boolean(one.star || one.name || one.note);

function write(found) {
  let rest = MOST;
  try {
    localStorage.setItem(KEY, JSON.stringify(found.filter((one) => valued(one) || (rest -= 1) >= 0)));
    return true;
  } catch {
    return false; // no room, or none is allowed: the page works without
  }
}

/** Keep a question with the first rows of its answer; its name, star and note stay. */
export function remember(asked, answer) {
  const others = past(), old = others.find((other) => same(asked, other)) ?? {};
  const sample = answer ? { columns: answer.columns.slice(0, COLUMNS), rows: answer.rows.slice(0, ROWS).map((row) => row.slice(0, COLUMNS).map((cell) => cut(cell?.text ?? "", 80))) } : null;
  write([{ ...old, ...asked, when: Date.now(), total: answer?.total ?? 0, sample }, ...others.filter((other) => !same(asked, other))]);
}

/** Change the name, star or note of a question; false where the browser does not keep it. */
const change = (asked, fields) => write(past().map((one) => (same(asked, one) ? { ...one, ...fields } : one)));

/** What a person adds to a question: a star, a name, a note. */
export function keeping(asked, changed = () => {}) {
  const one = past().find((other) => same(asked, other));
  if (!one) return null;
  const said = el("span", { role: "status" });
  const set = (fields) => {
    said.textContent = change(asked, fields) ? "" : "The browser does not keep it.";
    changed();
  };
  const star = el("button", { type: "button", class: "star", "aria-pressed": String(Boolean(one.star)), "aria-label": "Favourite", title: "Favourite", onclick: () => {
    const on = star.getAttribute("aria-pressed") !== "true";
    star.setAttribute("aria-pressed", String(on));
    star.textContent = on ? "★" : "☆";
    set({ star: on });
  } }, one.star ? "★" : "☆");
  return el("div", { class: "keeping" }, star,
    el("input", { type: "text", value: one.name ?? "", placeholder: "Name", "aria-label": "Name of this question", maxlength: "200", onchange: (event) => set({ name: event.target.value.trim() }) }),
    el("textarea", { rows: "1", value: one.note ?? "", placeholder: "Note", "aria-label": "Note beside this answer", maxlength: "20000", onchange: (event) => set({ note: event.target.value.trim() }) }), said);
}

// -- files --------------------------------------------------------------------------------------------------------------

/** A text in Markdown that is only text. */
const plain = (text) => text.replace(/[\\`*_{}[\]<>()#+!|~&$-]/g, "\\$&").replace(/\s+/g, " ");

function fenced(text, language = "") {
  const marks = "`".repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(([found]) => found.length + 1)));
  return `${marks}${language}\n${text}\n${marks}\n`;
}

const title = (one) => plain(one.name || cut(one.text.replace(/\s+/g, " "), 80));
const when = (one) => new Date(one.when).toISOString().slice(0, 16).replace("T", " ");

function told(one, { programs }) {
  const { columns = [], rows = [] } = one.sample ?? {};
  const line = (cells) => `| ${cells.map((cell) => plain(cell) || " ").join(" | ")} |`;
  return [`## ${title(one)}\n`, ...(one.note ? [`${one.note.split("\n").map(plain).join("\n\n")}\n`] : []),
    ...(programs ? [fenced(one.text, one.language === "sparql" ? "sparql" : ""), ...(one.table ? ["Table clause:\n", fenced(one.table)] : [])] : []),
    `${NAMES[one.language] ?? plain(one.language)}, ${when(one)} UTC: ${count(one.total, "answer")}${one.total > rows.length && rows.length ? `, the first ${rows.length}` : ""}\n`,
    ...(rows.length ? [`${[line(columns), line(columns.map(() => "---")).replaceAll("\\-", "-"), ...rows.map(line)].join("\n")}\n`] : [])].join("\n");
}

/** What was asked as Markdown: names, notes, programs, the first rows of the answers. */
export const markdown = (found) => `# What was asked of ${plain(state.about?.graph ?? "a graph")}\n\n${found.map((one) => told(one, { programs: true })).join("\n")}`;

/** A call of Python that asks the same. */
function call({ text, table, language }) {
  const quoted = JSON.stringify(text);
  if (language === "sparql") return `graph.sparql(${quoted})`;
  if (language === "words") return `graph.ask(${quoted}, "openai:MODEL")`;
  if (language === "cypher") return `graph.cypher(${quoted})`;
  return `graph.query(${quoted}${language === "auto" ? "" : `, language=${JSON.stringify(language)}`}${table ? `, table=${JSON.stringify(table)}` : ""})`;
}

/** What was asked as a notebook of Jupyter (nbformat 4.5) that asks it again. */
export function notebook(found) {
  const cell = (kind, source, at) => ({ cell_type: kind, id: `cell-${at}`, metadata: {}, source, ...(kind === "code" ? { execution_count: null, outputs: [] } : {}) });
  const open = `import condgraph\n\n# Where the graph is: a folder, or the address of a server.\ngraph = condgraph.open("PATH", graph=${JSON.stringify(state.about?.graph ?? "default")}, read_only=True)`;
  const cells = [["markdown", `# What was asked of ${plain(state.about?.graph ?? "a graph")}`], ["code", open], ...found.flatMap((one) => [["markdown", told(one, { programs: false })], ["code", call(one)]])];
  return JSON.stringify({ nbformat: 4, nbformat_minor: 5, metadata: { language_info: { name: "python" } }, cells: cells.map(([kind, source], at) => cell(kind, source, at)) }, null, 1);
}

// -- the page -----------------------------------------------------------------------------------------------------------

/** Questions that were asked in this browser. */
export function historyPage(place) {
  const list = el("ol", { class: "history" }), filter = el("input", { id: "history-filter", type: "search", oninput: () => draw() }), starred = el("input", { id: "starred", type: "checkbox", onchange: () => draw() });
  let listed = [];
  const draw = () => {
    const wanted = filter.value.trim().toLowerCase();
    listed = past().filter((one) => (!starred.checked || one.star) && [one.name, one.note, one.text, one.table].some((text) => text?.toLowerCase().includes(wanted)));
    fill(list, listed.map((one) => el("li", {}, el("a", { href: link("ask", { l: one.language === "auto" ? "" : one.language, q: one.text, t: one.table, g: one.graph ?? "" }) }, el("code", {}, cut(one.text, 300)), one.table ? [" ", el("code", {}, cut(one.table, 300))] : null),
      el("small", {}, ` ${NAMES[one.language] ?? one.language} · ${new Date(one.when).toLocaleString()} · ${count(one.total, "answer")}`), keeping(one))));
  };
  const found = past(), rest = found.filter(valued);
  const forget = () => {
    write(rest.length < found.length ? rest : []);
    historyPage(place);
  };
  const leave = (name, type, make) => el("button", { type: "button", "data-file": name, onclick: () => save(name, new Blob([make(listed)], { type })) }, name.endsWith("md") ? "Markdown" : "Notebook");
  fill(place, el("h1", {}, "History"), el("p", {}, "What was asked in this browser; it is kept here alone. "),
    !found.length ? el("p", {}, "Nothing was asked yet.") : [
      el("p", { class: "bar" }, el("label", { for: "history-filter" }, "Only with "), filter, el("label", {}, starred, " favourites"), el("span", {}, "Export what is listed:"), leave("questions.md", "text/markdown", markdown), leave("questions.ipynb", "application/x-ipynb+json", notebook),
        el("button", { type: "button", onclick: forget }, rest.length && rest.length < found.length ? "Forget all without star, name or note" : "Forget all")), list]);
  draw();
}
