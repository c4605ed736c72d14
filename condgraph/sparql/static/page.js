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
