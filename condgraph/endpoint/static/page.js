// Starts YASGUI on the endpoint of this server. Completions that ask other servers stay off.
"use strict";

const settings = JSON.parse(document.getElementById("settings").textContent);
const endpoint = new URL("sparql", document.baseURI).href;

Yasgui.Yasqe.defaults.value = settings.query;
Yasgui.Yasqe.defaults.autocompleters = ["variables"];
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
