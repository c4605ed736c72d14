// What the parts of the page share: what is served, which graph is asked, where one is.

export const state = { about: null, graph: "", scratch: [], served: null };

/** Whether the graph that is asked is one of files that were loaded here. */
export const isScratch = () => state.scratch.some((one) => one.graph === state.graph);

export const NAMES = {
  auto: "Recognise", kopl: "KoPL", llm_query: "LLM query", pattern: "Pattern", logic: "Logical query", sparql: "SPARQL", cypher: "Cypher", words: "In words",
};

/** An address of the page: `#/ask?l=kopl&q=...`. */
export function link(page, fields = {}) {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries({ g: state.graph, ...fields })) if (value) found.set(name, value);
  return `#/${page}${found.size ? "?" + found : ""}`;
}

export function place() {
  const [page, fields] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { page: page || "ask", fields: new URLSearchParams(fields ?? "") };
}
