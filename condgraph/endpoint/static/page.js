// Starts YASGUI on the endpoint of this server. Completions that ask other servers stay off; those of names ask this one.
"use strict";

const settings = JSON.parse(document.getElementById("settings").textContent);
const endpoint = new URL("sparql", document.baseURI).href;

Yasgui.Yasqe.defaults.value = settings.query;
Yasgui.Yasqe.defaults.autocompleters = ["variables"];

// Completion: names of the graph as IRIs and as texts, and the vocabulary, from the API that stands beside the page.
const PIECES = /<[^<>"{}|^`\\\s]*>|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/g;
let looking = null, vocabulary = null;

// What is being written before the caret, and where in its line that begins: an IRI, a text, or a word.
function writing(yasqe) {
  const { line, ch } = yasqe.getDoc().getCursor();
  const row = yasqe.getDoc().getLine(line), before = row.slice(0, ch).replace(PIECES, (piece) => "ǁ".repeat(piece.length));
  if (before.includes("#")) return null;
  const ends = (mark) => ch + (row[ch] === mark ? 1 : 0);
  const iri = /<([^<>"{}|^`\\\s=]+)$/.exec(before);
  if (iri) return { kind: "iri", text: iri[1], from: ch - iri[0].length, to: ends(">") };
  const text = /(["'])([^"']+)$/.exec(before);
  if (text) return { kind: "text", mark: text[1], text: text[2], from: ch - text[0].length, to: ends(text[1]) };
  const word = /(?:^|[^\p{L}\p{N}_@^?$:])(\p{L}[\p{L}\p{N}_:]+)$/u.exec(before);
  return word && { kind: "word", text: word[1], from: ch - word[1].length, to: ch };
}

async function fromApi(path, signal) {
  const token = sessionStorage.getItem("condgraph.token");
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  // Without a token from the studio, the browser sends the password that this page was opened with.
  const reply = await fetch(new URL(`api/v1/${path}`, document.baseURI), { signal, headers, credentials: token ? "omit" : "same-origin" });
  if (!reply.ok) throw new Error((await reply.json()).error.message);
  return reply.json();
}

// What may stand there, with what it is called: `[text, shown]`.
async function suggested({ kind, mark, text }, signal) {
  const quoted = (name) => mark + name.replaceAll("\\", "\\\\").replaceAll(mark, `\\${mark}`) + mark;
  vocabulary ??= (await fromApi("about", signal)).functions.keywords.sparql.filter((one) => one.startsWith("pred:"));
  const own = kind === "text" ? [] : vocabulary.filter((one) => one.startsWith(text)).map((one) => (kind === "iri" ? `<${one}>` : one));
  if (text.includes(":") && own.length) return own.map((one) => [one, one]);
  const asked = new URLSearchParams({ text: kind === "iri" ? nameOf(text) : text, limit: 30, ids: true });
  for (const one of kind === "text" ? ["entity", "concept"] : kind === "word" ? ["predicate", "concept"] : ["predicate", "concept", "entity"]) asked.append("kinds", one);
  let { names } = await fromApi(`names?${asked}`, signal);
  // Beside words of the language only what begins like them.
  if (kind === "word") names = names.filter((one) => one.name.toLowerCase().startsWith(text.toLowerCase()));
  const found = new Map(own.map((one) => [one, one]));
  for (const one of names) {
    const written = kind === "text" ? quoted(one.name) : `<${one.iri}>`;
    if (!found.has(written)) found.set(written, `${one.name}   ${written}${one.about && one.about !== one.id ? `   ${one.about}` : ""}`);
  }
  return [...found];
}

const shownAs = new Map();
if (settings.studio) {
  Yasgui.Yasqe.registerAutocompleter({
    name: "names", bulk: false, autoShow: true,
    isValidCompletionPosition: (yasqe) => Boolean(writing(yasqe)),
    preProcessToken(yasqe, token) {
      const found = writing(yasqe);
      return found && { ...token, found, from: { ch: found.from }, to: { ch: found.to } };
    },
    async get(yasqe, token) {
      looking?.abort();
      const own = looking = new AbortController();
      // Who types on is asked for nothing.
      await new Promise((done) => setTimeout(done, 150));
      if (own.signal.aborted) return [];
      try {
        const found = await suggested(token.found, own.signal);
        shownAs.clear();
        for (const [text, shown] of found) shownAs.set(text, shown);
        return found.map(([text]) => text);
      } catch (error) {
        if (error.name !== "AbortError") yasqe.showNotification("names", `Names cannot be completed: ${error.message}`);
        return [];
      }
    },
    postprocessHints: (_, hints) => hints.map((hint) => ({ ...hint, displayText: shownAs.get(hint.text) ?? hint.text })),
  });
}

window.yasgui = new Yasgui(document.getElementById("yasgui"), {
  requestConfig: {
    endpoint,
    method: "POST",
    acceptHeaderSelect: "application/sparql-results+json,*/*;q=0.1",
    acceptHeaderGraph: "text/turtle,*/*;q=0.1",
  },
  endpointCatalogueOptions: { getData: () => [{ endpoint }] },
  copyEndpointOnNewTab: true,
  yasr: { prefixes: settings.prefixes },
});

// A result that the server cut says so above its rows, also when the page is loaded again and shows what it has kept.
const MOST_ROWS = "X-SPARQL-MaxRows";
const keptAs = (tab) => `condgraph_cut_${tab.getId()}`;

function cutAt(tab, results) {
  if (!results) return null;
  if (!results.res && !results.error) return localStorage.getItem(keptAs(tab));
  const rows = results.res?.headers?.get(MOST_ROWS) ?? null;
  if (rows === null) localStorage.removeItem(keptAs(tab));
  else localStorage.setItem(keptAs(tab), rows);
  return rows;
}

function tellCut(tab) {
  const yasr = tab?.getYasr();
  if (!yasr) return;
  yasr.rootEl.querySelector(".cut")?.remove();
  const rows = cutAt(tab, yasr.results);
  if (rows === null) return;
  const notice = document.createElement("p");
  notice.className = "cut";
  notice.setAttribute("role", "status");
  const number = Number(rows).toLocaleString("en");
  notice.textContent = `Cut at ${number} rows: there are more results, and this endpoint gives no more of them at once.`;
  yasr.rootEl.insertBefore(notice, yasr.resultsEl);
}

// Results are drawn behind these events.
const soon = (_, tab) => setTimeout(() => tellCut(typeof tab === "string" ? window.yasgui.getTab(tab) : tab));
window.yasgui.on("queryResponse", soon);
window.yasgui.on("tabSelect", soon);
window.yasgui.on("query", (_, tab) => tab.getYasr()?.rootEl.querySelector(".cut")?.remove());
window.yasgui.on("tabClose", (_, tab) => localStorage.removeItem(keptAs(tab)));
tellCut(window.yasgui.getTab());

// Queries made from what the graph holds: one that is chosen stands in a tab of its own, and runs.
function ask(name, query) {
  const tab = window.yasgui.addTab(true, { name, yasqe: { value: query } });
  tab.query();
}

const examples = document.getElementById("examples");
const choice = examples.querySelector("select");
for (const { about, query } of settings.examples) {
  const option = document.createElement("option");
  option.textContent = about;
  option.value = query;
  choice.append(option);
}
examples.hidden = settings.examples.length === 0;
choice.addEventListener("change", () => {
  if (choice.value) ask(choice.selectedOptions[0].textContent, choice.value);
  choice.value = "";
});

// What an IRI is called stands beside it. Nodes of values say their value in their IRI; other names are asked for, some at once.
const LABEL = "http://www.w3.org/2000/01/rdf-schema#label";
const SAFE = /^[A-Za-z][A-Za-z0-9+.-]*:[^\u0000-\u0020<>"{}|^`\\]*$/;
const AT_ONCE = Math.min(200, settings.most || 200);
const labels = new Map();

function nameOf(part) {
  try {
    return part === ".empty" ? "" : decodeURIComponent(part.replaceAll("_", " "));
  } catch {
    return part;
  }
}

function valueOf(iri) {
  const start = `${settings.base}.v/`;
  if (!settings.base || !iri.startsWith(start)) return null;
  const [kind, ...rest] = iri.slice(start.length).split("/");
  if (kind === "s") return nameOf(rest.join("/"));
  if (kind === "q") return rest[1] === "1" ? rest[0] : `${rest[0]} ${nameOf(rest.slice(1).join("/"))}`;
  if (kind !== "t") return null;
  const [begin, , precision] = rest.map(Number);
  const date = new Date(begin * 1000);
  // Years of more or fewer than four digits stay as they are.
  if (Number.isNaN(date.getTime()) || !/^\d{4}-/.test(date.toISOString()) || !(precision >= 1 && precision <= 4)) return null;
  const text = date.toISOString().replace(".000Z", "");
  return precision === 4 ? text : text.slice(0, [4, 7, 10][precision - 1]);
}

async function lookUp(iris) {
  const values = iris.map((iri) => `<${iri}>`).join(" ");
  const query = `SELECT ?iri (SAMPLE(?label) AS ?name) WHERE { VALUES ?iri { ${values} } ?iri <${LABEL}> ?label } GROUP BY ?iri`;
  const body = new URLSearchParams({ query });
  const reply = await fetch(endpoint, { method: "POST", body, headers: { Accept: "application/sparql-results+json" } });
  if (!reply.ok) throw new Error(await reply.text());
  for (const { iri, name } of (await reply.json()).results.bindings) labels.set(iri.value, name.value);
}

// The IRIs that a table shows, which YASR writes as links.
const links = (root) => [...root.querySelectorAll("a.iri:not([data-named])")].filter((link) => SAFE.test(link.getAttribute("href")));

function write(link) {
  const iri = link.getAttribute("href");
  const label = valueOf(iri) ?? labels.get(iri);
  link.dataset.named = "";
  if (!label) return;
  const name = document.createElement("span");
  name.className = "called";
  name.textContent = label;
  // In front, since what does not fit in a cell is cut at its end.
  link.parentElement.prepend(name);
}

let naming = false;
async function nameAll() {
  if (naming) return;
  naming = true;
  try {
    for (let found = links(document.body); found.length; found = links(document.body)) {
      const wanted = [...new Set(found.map((link) => link.getAttribute("href")))].filter((iri) => !labels.has(iri) && valueOf(iri) === null);
      const now = wanted.slice(0, AT_ONCE);
      for (const iri of now) labels.set(iri, "");
      if (now.length) await lookUp(now);
      const known = (link) => labels.has(link.getAttribute("href")) || valueOf(link.getAttribute("href")) !== null;
      found.filter(known).forEach(write);
    }
  } catch (error) {
    console.warn(`names of IRIs could not be asked for: ${error.message}`);
  } finally {
    naming = false;
  }
}

new MutationObserver(() => links(document.body).length && nameAll()).observe(document.getElementById("yasgui"), { childList: true, subtree: true });
nameAll();

// What the graph says of an IRI, in a tab of its own.
function about(iri) {
  const called = labels.get(iri) || valueOf(iri) || nameOf(iri.replace(/.*[/#]/, ""));
  ask(called, settings.about.replaceAll("{iri}", () => iri));
}

// An IRI that was asked for as an address leads here (`?about=`), once: a page that is loaded again keeps its tabs.
const wanted = new URLSearchParams(location.search).get("about");
if (wanted && SAFE.test(wanted)) {
  history.replaceState(null, "", location.pathname + location.hash);
  about(wanted);
}

// A link leads there; with a key held, to wherever the IRI is an address of.
document.getElementById("yasgui").addEventListener(
  "click",
  (event) => {
    const link = event.target.closest?.("a.iri");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || !SAFE.test(link.getAttribute("href"))) return;
    event.preventDefault();
    about(link.getAttribute("href"));
  },
  true,
);
