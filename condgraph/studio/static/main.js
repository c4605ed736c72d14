// The page: where one is, the editor, what is asked and what comes of it.

import { ask, forget, get, onRefused, post, Refused, setToken } from "./api.js";
import { column, FOREIGN } from "./completion.js";
import { announce, count, cut, el, fill, whole } from "./dom.js";
import { contents } from "./start.js";
import { isScratch, link, NAMES, place, state } from "./state.js";

/** A part of the page that is read when it is first needed: the first page is there sooner without it. */
const part = (name) => import(`./${name}.js`);

const EXAMPLES = {
  auto: "FindAll() FilterConcept(…) QueryName()   or any other language",
  kopl: "Find(Nepal) Relate(capital, forward) QueryName()",
  llm_query: "Query1: \"get_information(relation='capital', head_entity='Nepal')\"",
  pattern: "(UNKNOWN mountain 1) -[country]-> (Nepal)",
  logic: "?x : capital(\"Nepal\", ?x)",
  sparql: "SELECT ?name WHERE { ?m <country>/<pred:name> 'Nepal' ; <pred:name> ?name }",
  cypher: "MATCH (n) RETURN n LIMIT 10",
  words: "Which mountains are in Nepal?",
};

const main = el("main", { id: "main", tabindex: "-1" }), said = el("p", { id: "said", class: "unseen", role: "status" });
const languages = el("select", { id: "language", onchange: () => speak(languages.value) });
const limit = el("input", { id: "limit", type: "number", min: "1", max: "100000", value: "1000" });
const runButton = el("button", { type: "button", class: "run", onclick: () => run() }, "Run");
const stopButton = el("button", { type: "button", hidden: true, onclick: () => running?.abort() }, "Stop");
const messages = el("div", { class: "messages", "aria-live": "polite" }), result = el("div", { class: "answer" });
const holder = el("div", { class: "editor" }), clauseHolder = el("div", { class: "editor small" });
const clausePart = el("div", { class: "clause" }, el("span", { "aria-hidden": "true" }, "Table"), clauseHolder);
const graphContents = contents(async (name, program, kind) => {
  if (languages.value === "sparql" && kind) editor.type(await iriOf(name, kind));
  else if (editor.text.trim() || !program || !["auto", "kopl"].includes(languages.value)) editor.insert(name);
  else editor.text = program;
  editor.focus();
});

/** A name of the graph as SPARQL writes it. */
async function iriOf(name, kind) {
  const { names } = await get("names", { text: name, kinds: [kind], limit: 200, ids: true, graph: state.graph }).catch(() => ({ names: [] }));
  const found = names.find((one) => one.name === name);
  return found ? `<${found.iri}>` : JSON.stringify(name);
}

const fullEditor = el("a", { href: `${document.body.dataset.root}sparql`, hidden: true }, "The same in YASGUI");
const asking = el("div", { class: "asking" }, el("h1", { class: "unseen" }, "Ask"), graphContents.aside, el("div", { class: "work" },
  el("div", { class: "bar" }, el("label", { for: "language" }, "Language"), languages, el("label", { for: "limit" }, "At most"), limit, runButton, stopButton,
    el("button", { type: "button", onclick: share }, "Copy a link"), fullEditor, el("small", { id: "keys" }, "Ctrl-Enter runs; Ctrl-Space completes; Tab leaves the editor")),
  holder, clausePart, messages, result, graphContents.home));
let editor = null, clause = null;
/** The editors, whose library is the largest part of the page: what is in the graph is drawn before them, if it comes soon. */
async function edited(drawn) {
  if (editor) return;
  await Promise.race([drawn, new Promise((done) => setTimeout(done, 150))]);
  const { makeEditor } = await part("editor");
  editor ??= makeEditor(holder, () => run(), "Program or question");
  clause ??= makeEditor(clauseHolder, () => run(), "Table clause", column);
}
/** The questions in words so far, which the next may refer to, and how many are sent with it. */
let talk = { graph: "", turns: [] };
const MOST_TURNS = 6;
let running = null, shownPlace = "";

// -- asking -------------------------------------------------------------------------------------------------------------

function chosen(text) {
  if (languages.value !== "auto") return languages.value;
  return FOREIGN.find(([name, looks]) => state.about.languages.includes(name) && looks.test(text))?.[0];
}

async function run({ words = {}, quiet = false } = {}) {
  const text = editor.text.trim() ? editor.text : "";
  if (!text) return announce("There is nothing to ask.");
  running?.abort();
  const own = running = new AbortController();
  const asked = { limit: Math.min(100_000, Math.max(1, Number(limit.value) || 1000)), graph: state.graph, table: clauseText(), facts: 2000 };
  if (!quiet) history.replaceState(null, "", shownPlace = link("ask", { l: languages.value === "auto" ? "" : languages.value, q: text, t: asked.table }));
  fill(messages);
  graphContents.home.hidden = true;
  editor.mark([]);
  clause.mark([]);
  stopButton.hidden = false;
  result.setAttribute("aria-busy", "true");
  announce("Asking");
  try {
    if (languages.value === "words") await inWords(text, asked, words, own.signal);
    else {
      const answer = await post("query", { ...asked, program: text, language: chosen(text) }, own.signal);
      if (own !== running) return;
      await tell(answer, asked);
      if (own === running) await keep({ text, table: asked.table, language: languages.value, graph: asked.graph }, answer);
    }
  } catch (error) {
    if (own === running) refused(error);
  } finally {
    if (own === running) {
      running = null;
      stopButton.hidden = true;
      result.removeAttribute("aria-busy");
    }
  }
}

async function tell(answer, asked) {
  const own = running, { drawAnswer } = await part("answer");
  if (own !== running) return;
  warn(answer.warnings);
  drawAnswer(result, answer, asked, (text) => {
    if (languages.value === "words") speak(answer.language);
    editor.text = text;
    run();
  });
  announce(count(answer.total, "answer"));
}

/** Keep what was asked; a name and a note may stand beside its answer. */
async function keep(asked, answer) {
  const { keeping, remember } = await part("kept");
  remember(asked, answer);
  result.append(keeping(asked) ?? "");
}

function warn(warnings) {
  editor.mark(languages.value === "words" ? [] : warnings.map((one) => ({ span: one.span, text: one.text, severity: "warning" })));
  messages.append(...warnings.map((one) => el("p", { class: "warning" }, whole(one.text))));
}

/** The clause of a table that goes with the program; empty where the language takes none. */
const clauseText = () => (clausePart.hidden || !clause.text.trim() ? "" : clause.text);

/** Where an error stands: the editor, the place in it, and whether that is the whole name which is wrong. */
function placed(error) {
  // Those of a clause say it in their text: their program has no place for them.
  const found = /at character (\d+) of the table/.exec(error.message), signs = [...clause.text];
  if (!found) return { where: editor, span: error.span, exact: Boolean(error.span) };
  const from = Number(found[1]) - 1, rest = signs.slice(from).join("");
  const written = error.name && [error.name, `"${error.name}"`, `\`${error.name}\``].find((one) => rest.startsWith(one));
  return { where: clause, span: [from, Math.min(from + [...(written || "x")].length, signs.length)], exact: Boolean(written) };
}

/** What was wrong, where it stands, and the nearest names to take instead. */
function refused(error) {
  if (error.name === "AbortError") {
    fill(messages, el("p", { class: "warning" }, "Stopped."));
    return;
  }
  if (!(error instanceof Refused)) {
    fill(messages, el("p", { class: "error" }, "The page failed."));
    throw error;
  }
  const { where, span, exact } = placed(error);
  const take = (name) => {
    where.replace(span, name);
    run();
  };
  where.mark([{ span, text: error.message, severity: "error", actions: exact ? error.candidates.map((name) => ({ name, apply: () => take(name) })) : [] }]);
  fill(messages, el("div", { class: "error" }, el("p", {}, el("strong", {}, whole(error.message)), error.hint ? `; ${error.hint}` : ""),
    error.candidates.length ? el("p", {}, "Nearest: ", error.candidates.map((name) => [" ", exact ? el("button", { type: "button", class: "near", onclick: () => take(name) }, cut(name, 100)) : el("code", {}, cut(name, 100))])) : null));
  fill(result);
  announce(error.message);
}

/** The turns before, and a button that forgets them. */
function conversation(before) {
  if (!before.length) return null;
  const shown = el("details", { class: "turns" }, el("summary", {}, `After ${count(before.length, "question")}`), el("ol", {}, before.map((one) => el("li", {}, one.question))),
    el("button", { type: "button", onclick: () => (talk = { graph: "", turns: [] }, shown.remove(), announce("The next question begins a conversation.")) }, "Begin anew"));
  return shown;
}

async function inWords(text, asked, words, signal) {
  const steps = el("ol", { class: "steps" }), writes = el("pre", { class: "writes", hidden: true, tabindex: "0", "aria-label": "What the model writes" }), place = el("div");
  fill(result, el("h2", {}, "Steps"), steps, writes, place);
  let outcome = null;
  // A question that is asked again, with a choice say, takes the place of its turn.
  const before = talk.graph === asked.graph ? talk.turns.filter((one, at) => one.question !== text || at < talk.turns.length - 1) : [];
  await ask({ ...asked, question: text, before: before.slice(-MOST_TURNS), texts: true, ...words }, (line) => {
    if (line.text) {
      // Pieces of several samples would mix: those of the first are shown.
      if (line.text.sample) return;
      writes.hidden = false;
      writes.textContent = (line.text.begins ? "" : writes.textContent) + (line.text.step === "say" && !line.text.begins ? " " : "") + line.text.text;
    } else if (line.step) steps.append(el("li", {}, el("strong", {}, line.step.name), ` ${(1000 * line.step.seconds).toFixed(0)} ms `, line.step.about));
    else if (line.outcome) outcome = line.outcome;
    else throw new Refused(200, line.error);
  }, signal);
  if (!outcome) throw new Refused(0, { code: "network", message: "the answer broke off" });
  const use = (one) => {
    speak(one.language || "auto");
    editor.text = one.program;
    clause.text = "";
    run();
  };
  const kept = ({ question, program, language, source }) => ({ question, program, language, ...(source ? { source } : {}) });
  const turn = { ...kept(outcome.answer ? outcome : { program: "", language: "", source: outcome.source }), question: text, parts: outcome.answer ? outcome.parts.map(kept) : [] };
  talk = { graph: asked.graph, turns: [...before, { ...turn, ...(words.choose ? { choose: words.choose } : {}) }] };
  fill(result, conversation(before), el("h2", {}, { answered: "Answer", doubtful: "Doubtful answer" }[outcome.status] ?? `No answer: ${outcome.status}`),
    outcome.references.map((one) => el("p", { class: "reference" }, `“${one.text}” is ${one.names.join(", ")}, of ${one.of}`)), outcome.text ? el("p", { class: "said" }, outcome.text) : null,
    outcome.citations.length ? el("ol", { class: "citations" }, outcome.citations.map((one) => el("li", {}, one))) : null,
    outcome.choices.map((one) => el("fieldset", {}, el("legend", {}, `Which ${one.kind} is meant by “${one.name}”?`),
      one.options.map((option) => el("p", {}, el("button", { type: "button", onclick: () => run({ words: { choose: { ...words.choose, [one.name]: option.key } } }) }, option.name || option.key), ` ${option.about}`)))),
    el("details", {}, el("summary", {}, `How it came about: ${outcome.calls} calls of ${outcome.model}`), steps,
      outcome.attempts.map((one) => el("div", { class: "attempt" }, el("pre", { tabindex: "0", "aria-label": "Program" }, one.program || "(no program)"), one.error ? el("p", { class: "error" }, one.error) : null,
        one.program ? el("button", { type: "button", onclick: () => use(one) }, "Open in the editor") : null))), place);
  messages.append(...outcome.warnings.map((one) => el("p", { class: "warning" }, one.text)));
  if (outcome.answer) (await part("answer")).drawAnswer(place, outcome.answer, asked, (changed) => use({ program: changed, language: outcome.answer.language }));
  await keep({ text, table: "", language: "words", graph: asked.graph }, outcome.answer);
  announce(outcome.text || outcome.status);
}

async function share() {
  const address = new URL(link("ask", { l: languages.value === "auto" ? "" : languages.value, q: editor.text, t: clauseText() }), location.href).href;
  try {
    await navigator.clipboard.writeText(address);
    announce("The link is copied.");
    fill(messages, el("p", {}, "The link is copied."));
  } catch {
    fill(messages, el("p", {}, "The link: ", el("a", { href: address }, "this question")));
  }
}

// -- where one is -------------------------------------------------------------------------------------------------------

function speak(language) {
  languages.value = [...languages.options].some((one) => one.value === language) ? language : "auto";
  editor.speak(languages.value, EXAMPLES[languages.value]);
  clausePart.hidden = !["auto", "kopl", "llm_query", "logic"].includes(languages.value);
  fullEditor.hidden = languages.value !== "sparql" || !document.body.dataset.sparql;
  clause.speak("table", "group by country show count()   (a table of the rows; may stay empty)");
}

/** The pages beside the editor: where each is, and what draws it. */
const PAGES = { entity: ["entity", "entityPage"], browse: ["browse", "browsePage"], schema: ["looking", "schemaPage"], history: ["kept", "historyPage"], api: ["reference", "apiPage"] };

async function go() {
  const { page, fields } = place();
  const graph = fields.get("g") ?? "";
  if (graph !== state.graph) await turn(graph);
  for (const one of document.querySelectorAll("header a[data-page]")) {
    if (one.dataset.page === page) one.setAttribute("aria-current", "page");
    else one.removeAttribute("aria-current");
    one.href = link(one.dataset.page);
  }
  document.title = `${{ entity: "Entity", browse: "Rows", schema: "Schema", history: "History", api: "API", sparql: "SPARQL", start: state.about.graph }[page] ?? "Ask"} · condgraph studio`;
  if (PAGES[page]) {
    const where = el("div", { class: "page" });
    fill(main, where);
    try {
      const [name, draw] = PAGES[page];
      await (await part(name))[draw](where, fields);
    } catch (error) {
      fill(where, el("h1", {}, error.status === 404 || error.code === "unknown-name" ? "Not found" : "This cannot be shown"), el("p", { class: "error" }, whole(error.message)), error.candidates?.length ? el("p", {}, "Nearest: ", error.candidates.map((name, i) => [i ? ", " : "", el("a", { href: link("entity", { name }), class: "entity" }, cut(name, 100))])) : null);
    }
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
    return;
  }
  fill(main, asking);
  if (page === "start") {
    fill(messages);
    fill(result);
    editor.text = clause.text = shownPlace = "";
    graphContents.home.hidden = false;
  }
  if (page === "sparql") speak("sparql");
  editor.view.requestMeasure();
  if (fields.get("q") && location.hash !== shownPlace) {
    speak(fields.get("l") ?? "auto");
    editor.text = fields.get("q");
    clause.text = fields.get("t") ?? "";
    shownPlace = location.hash;
    // A question in words costs somebody something: it waits for the button. So does one of a graph that is gone.
    if (languages.value !== "words" && state.graph === graph) await run({ quiet: true });
  }
}

const sparqlTab = el("a", { href: "#/sparql", "data-page": "sparql" }, "SPARQL");

// -- which graph --------------------------------------------------------------------------------------------------------

const graphs = el("select", { id: "graph", onchange: () => {
  location.hash = link("ask").replace(/[?&]g=[^&]*/, "") + (graphs.value ? `?g=${encodeURIComponent(graphs.value)}` : "");
} });
const remove = el("button", { type: "button", hidden: true, onclick: async () => {
  const graph = state.graph;
  await forget(graph).catch(() => null);
  state.scratch = state.scratch.filter((one) => one.graph !== graph);
  location.hash = "#/ask";
} }, "Remove");

async function turn(graph) {
  const contents = get("start", { graph, questions: false });
  contents.catch(() => null); // `read` tells it
  try {
    state.about = graph ? await get("about", { graph }) : state.served ?? await get("about");
    state.graph = graph;
    if (graph && !isScratch() && !state.about.graphs.includes(graph)) state.scratch.push({ graph, name: "scratch" });
  } catch (error) {
    if (!graph) throw error;
    fill(messages, el("p", { class: "error" }, error.message));
    fill(result);
    state.scratch = state.scratch.filter((one) => one.graph !== graph);
    return turn("");
  }
  state.served ??= graph ? null : state.about;
  const names = ["auto", ...state.about.languages, ...(state.about.model ? ["words"] : [])];
  const kept = languages.value, drawn = graphContents.read(contents, () => get("start", { graph }));
  fill(languages, names.map((name) => el("option", { value: name }, NAMES[name])));
  const [first, ...others] = state.about.graphs;
  fill(graphs, el("option", { value: "" }, state.served ? `${first ?? state.served.graph} (${state.served.store})` : first ?? "the graph that is served"), others.map((name) => el("option", { value: name }, name)),
    state.scratch.map((one) => el("option", { value: one.graph }, `scratch: ${cut(one.name, 40)}`)));
  graphs.value = state.graph;
  sparqlTab.hidden = !state.about.languages.includes("sparql");
  remove.hidden = !isScratch();
  await edited(drawn);
  speak(names.includes(kept) ? kept : "auto");
  return undefined;
}

function loaded(graph, name) {
  const known = state.scratch.find((one) => one.graph === graph);
  if (known) known.name += `, ${name}`;
  else state.scratch.push({ graph, name });
  if (state.graph === graph) turn(graph);
  else location.hash = `#/schema?g=${graph}`;
}

const load = async (files) => (await part("looking")).filesDialog(files, loaded);
const picker = el("input", { type: "file", multiple: true, hidden: true, "aria-label": "Files to load", onchange: () => {
  if (picker.files.length) load([...picker.files]);
  picker.value = "";
} });

for (const kind of ["dragover", "drop"]) {
  addEventListener(kind, (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    if (kind === "drop" && event.dataTransfer.files.length && !document.querySelector("dialog")) load([...event.dataTransfer.files]);
  });
}

// -- the token, the colours, the beginning ------------------------------------------------------------------------------

onRefused(() => new Promise((done) => {
  if (document.querySelector("dialog.token")) return done(false);
  const field = el("input", { type: "password", id: "token", autocomplete: "off" });
  const dialog = el("dialog", { class: "token", "aria-labelledby": "token-title" }, el("h2", { id: "token-title" }, "A token is needed"),
    el("form", { method: "dialog" }, el("label", { for: "token" }, "Your token "), field, " ", el("button", {}, "Go on")));
  dialog.addEventListener("close", () => {
    if (field.value) setToken(field.value.trim());
    dialog.remove();
    done(Boolean(field.value));
  });
  document.body.append(dialog);
  dialog.showModal();
  return undefined;
}));

const theme = el("select", { id: "theme", onchange: () => {
  document.documentElement.dataset.theme = theme.value;
  localStorage.setItem("condgraph.theme", theme.value);
  window.dispatchEvent(new Event("colours")); // `onColours` hears it
} }, ["auto", "light", "dark"].map((one) => el("option", { value: one }, one)));
theme.value = ["light", "dark"].includes(localStorage.getItem("condgraph.theme")) ? localStorage.getItem("condgraph.theme") : "auto";
document.documentElement.dataset.theme = theme.value;

document.body.replaceChildren(
  el("a", { href: "#main", class: "skip", onclick: (event) => (event.preventDefault(), main.focus()) }, "To the content"),
  el("header", {}, el("a", { href: "#/start", class: "brand", "data-page": "start" }, "condgraph"),
    el("nav", { "aria-label": "Pages" }, [["ask", "Ask"], ["schema", "Schema"], ["history", "History"], ["api", "API"]].map(([page, text]) => el("a", { href: `#/${page}`, "data-page": page }, text)),
      sparqlTab),
    el("span", { class: "right" }, el("label", { for: "graph" }, "Graph"), graphs, remove,
      el("button", { type: "button", onclick: () => picker.click() }, "Load files"), picker, el("label", { for: "theme" }, "Colours"), theme)),
  main, said);
fill(main, asking);
addEventListener("hashchange", go);
try {
  const { fields } = place();
  if (fields.get("g")) state.served = await get("about");
  await turn(fields.get("g") ?? "");
  await go();
  if (place().page === "ask") editor.focus();
} catch (error) {
  fill(main, el("h1", {}, "The studio cannot start"), el("p", { class: "error" }, error.message));
  if (!(error instanceof Refused)) throw error;
}
document.body.dataset.ready = "yes";
setTimeout(() => part("answer").catch(() => null), 300); // so that the first answer does not wait for it
