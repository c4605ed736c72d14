// What the parts of the page share: what is served, which graph is asked, where one is.

export const state = { about: null, graph: "", scratch: [], served: null };

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

const KEY = "condgraph.history";

/** Questions that were asked, the newest first. */
export function past() {
  try {
    const found = JSON.parse(localStorage.getItem(KEY));
    return Array.isArray(found) ? found.filter((one) => typeof one?.text === "string" && typeof one?.language === "string") : [];
  } catch {
    return [];
  }
}

export function remember(one) {
  const others = past().filter((other) => other.text !== one.text || (other.table ?? "") !== (one.table ?? "") || other.language !== one.language);
  try {
    localStorage.setItem(KEY, JSON.stringify([one, ...others].slice(0, 100)));
  } catch { /* no room, or none is allowed: the page works without */ }
}

export const forgetAll = () => localStorage.removeItem(KEY);
