// The API of this server (`/api/v1`), with the token where one is needed.

const root = document.body.dataset.root + "api/v1/";
let whenRefused = async () => false, asking = null;

/** What asks the person for a token; true where one was given. */
export function onRefused(ask) {
  whenRefused = ask;
}

export const setToken = (token) => sessionStorage.setItem("condgraph.token", token);

/** What the server says is wrong: `code`, `message`, `hint`, `span`, `candidates`. */
export class Refused extends Error {
  constructor(status, error) {
    super(error.message);
    Object.assign(this, { status, candidates: [], span: null, hint: null, ...error });
  }
}

async function send(path, options, again = true) {
  const token = sessionStorage.getItem("condgraph.token");
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  let response;
  try {
    response = await fetch(root + path, { ...options, headers, credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, { code: "network", message: "the server cannot be reached, or broke off" });
  }
  if (response.status === 401 && again) {
    // Several calls may wait for one token.
    asking ??= whenRefused().finally(() => {
      asking = null;
    });
    if (await asking) return send(path, options, false);
  }
  if (response.ok) return response;
  let error = { code: "error", message: `the server answers ${response.status}` };
  try {
    error = (await response.json()).error;
  } catch { /* no JSON: the status says enough */ }
  throw new Refused(response.status, error);
}

function address(fields) {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined || value === null || value === "") continue;
    for (const one of Array.isArray(value) ? value : [value]) found.append(name, one);
  }
  return found.size ? `?${found}` : "";
}

/** What the page asks first: sent while the rest of it is read. Without a token that is needed it is asked again. */
const early = new Map(["about", "start?questions=false"].map((name) => [name, send(name, {}, false).catch(() => null)]));

export async function get(name, fields = {}, signal) {
  const path = name + address(fields), sent = await early.get(path);
  early.delete(path);
  return (sent ?? await send(path, { signal })).json();
}

const body = (fields, signal) => ({
  method: "POST", signal, headers: { "Content-Type": "application/json" },
  body: JSON.stringify(Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== ""))),
});

export const post = async (name, fields, signal) => (await send(name, body(fields, signal))).json();

export const file = async (name, fields) => (await send(name, body(fields))).blob();

/** Ask in words: `tell` hears every line as it comes. */
export async function ask(fields, tell, signal) {
  const reader = (await send("ask", body(fields, signal))).body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) tell(JSON.parse(line));
  }
}

/** Load a file into a scratch graph. */
export const drop = async (data, fields) => (await send("graphs" + address(fields), {
  method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: data,
})).json();

export const forget = (graph) => send(`graphs/${encodeURIComponent(graph)}`, { method: "DELETE" });
