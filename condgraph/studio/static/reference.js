// The page of the API: what programs can ask this server, read from its own OpenAPI document.

import { get } from "./api.js";
import { el, fill, number } from "./dom.js";

const last = (reference) => reference.split("/").pop();

/** A schema in a few words: its type, what it may be, its bounds. */
function kind(schema) {
  if (schema.$ref) return el("a", { href: "#/api", "data-schema": last(schema.$ref), onclick: open }, last(schema.$ref));
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices) return choices.map((one, i) => [i ? " or " : "", kind(one)]);
  const said = [schema.enum ? schema.enum.join(" | ") : [schema.type ?? "anything"].flat().join(" or ")];
  if (schema.type === "array" && schema.items) said.push(" of ", kind(schema.items));
  if (schema.type === "object" && typeof schema.additionalProperties === "object") said.push(" of ", kind(schema.additionalProperties));
  const bounds = [["minimum", "from", ""], ["maximum", "to", ""], ["maxLength", "at most", " characters"], ["maxItems", "at most", " members"], ["maxProperties", "at most", " members"]]
    .filter(([name]) => schema[name] !== undefined).map(([name, word, of]) => `${word} ${number(schema[name])}${of}`);
  if (bounds.length) said.push(`, ${bounds.join(" ")}`);
  if (schema.default !== undefined) said.push(`; ${JSON.stringify(schema.default)} if left out`);
  return said;
}

function open(event) {
  event.preventDefault();
  const wanted = document.getElementById(`schema-${event.currentTarget.dataset.schema}`);
  wanted.open = true;
  wanted.querySelector("summary").focus();
  wanted.scrollIntoView();
}

function table(name, rows) {
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name }, el("table", {},
    el("thead", {}, el("tr", {}, ["Field", "Type", "Says"].map((one) => el("th", { scope: "col" }, one)))),
    el("tbody", {}, rows.map(([field, schema, needed, about]) => el("tr", {},
      el("td", {}, el("code", {}, field), needed ? " (needed)" : ""), el("td", {}, kind(schema)), el("td", {}, about ?? schema.description ?? ""))))));
}

const fields = (schema) => Object.entries(schema.properties ?? {}).map(([name, one]) => [name, one, schema.required?.includes(name), one.description]);

/** A command that anyone can run: what it sends is what the document gives as an example. */
function command(method, path, operation) {
  const body = operation.requestBody?.content["application/json"];
  const header = sessionStorage.getItem("condgraph.token") ? " -H 'Authorization: Bearer TOKEN'" : "";
  const needed = (operation.parameters ?? []).filter((one) => one.required && one.in === "query").map((one) => `${one.name}=TEXT`).join("&");
  const address = `'${location.origin}${path.replace(/\{(\w+)\}/g, (_, name) => name.toUpperCase())}${needed ? `?${needed}` : ""}'`;
  if (operation.requestBody && !body) return `curl${header} -H 'Content-Type: application/octet-stream' --data-binary @FILE ${address}`;
  if (!body) return `curl${method === "get" ? "" : ` -X ${method.toUpperCase()}`}${header} ${address}`;
  const sent = Object.fromEntries((body.schema.required ?? []).map((name) => [name, "…"]));
  return `curl${header} -H 'Content-Type: application/json' -d '${JSON.stringify(body.example ?? sent)}' ${address}`;
}

function section(path, method, operation) {
  const name = `${method.toUpperCase()} ${path}`;
  const body = operation.requestBody?.content["application/json"];
  const sent = [...(operation.parameters ?? []).map((one) => [one.name, one.schema, one.required, one.description]), ...(body ? fields(body.schema) : [])];
  const gives = Object.entries(operation.responses["200"]?.content ?? {}).map(([type, one], i) => [i ? ", or " : "", one.schema ? kind(one.schema) : "", ` (${type})`]);
  return el("section", { class: "operation" }, el("h2", {}, el("code", {}, name)), el("p", {}, operation.summary),
    sent.length ? table(`Fields of ${name}`, sent) : null,
    gives.length ? el("p", {}, "Gives ", gives) : null,
    el("pre", { tabindex: "0" }, command(method, path, operation)));
}

/** What programs can ask, with fields, bounds and commands. */
export async function apiPage(place) {
  fill(place, el("h1", {}, "Reading…"));
  const found = await get("openapi.json");
  const operations = Object.entries(found.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, one]) => section(path, method, one)));
  const statuses = Object.entries(found.paths).flatMap(([, methods]) => Object.values(methods)).flatMap((one) => Object.entries(one.responses));
  const wrong = [...new Map(statuses.filter(([status]) => status >= "400").map(([status, one]) => [status, one.description]))].sort();
  fill(place, el("h1", {}, "The API"),
    el("p", {}, "What programs can ask this server. The ", el("a", { href: `${document.body.dataset.root}api/v1/openapi.json` }, "OpenAPI document"), " says the same to tools."),
    operations,
    el("h2", {}, "What goes wrong"), table("Statuses", wrong.map(([status, about]) => [status, { $ref: "Error" }, false, about])),
    el("h2", {}, "What is given"),
    Object.entries(found.components.schemas).map(([name, schema]) => el("details", { id: `schema-${name}` }, el("summary", {}, name), schema.description ? el("p", {}, schema.description) : null,
      schema.properties ? table(`Fields of ${name}`, fields(schema)) : el("p", {}, kind(schema)))));
}
