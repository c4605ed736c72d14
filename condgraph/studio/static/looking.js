// The schema, and files that are loaded.

import { drop, get } from "./api.js";
import { count, cut, el, fill, listed, number, visible, whole } from "./dom.js";
import { isScratch, link, state } from "./state.js";

const kinds = (found) => found.map((one, i) => [i ? ", " : "", listed([one.name || one.sort]), ` (${number(one.statements)})`]);
const values = (found) => found.map((one, i) => [i ? "; " : "", one.type, one.unit !== "1" ? [" in ", listed([one.unit])] : "", ` (${number(one.count)})${one.first ? `, ${one.first} to ${one.last}` : ""}`]);

/** What can be asked about. */
export async function schemaPage(place) {
  fill(place, el("h1", {}, "Reading…"));
  const found = await get("schema", { graph: state.graph });
  const table = (name, columns, rows) => el("section", {}, el("h2", {}, `${name} (${number(rows.length)})`), !rows.length ? el("p", {}, "None.") :
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name }, el("table", {},
      el("thead", {}, el("tr", {}, columns.map((one) => el("th", { scope: "col" }, one)))),
      el("tbody", {}, rows.slice(0, 500).map((row) => el("tr", { "data-name": cut(row[0], 200).toLowerCase() }, row[1].map((cell) => el("td", { class: typeof cell === "number" ? "number" : "" }, typeof cell === "number" ? number(cell) : typeof cell === "string" ? whole(cell) : cell))))))),
    rows.length > 500 ? el("p", { class: "warning" }, `The first 500 of ${number(rows.length)} are shown.`) : null);
  const tables = el("div");
  const draw = (wanted) => {
    const kept = (one) => one.name.toLowerCase().includes(wanted);
    fill(tables,
      table("Predicates", ["Name", "Statements", "From", "To", "Values", "Qualifiers", "Such as"], found.predicates.filter(kept).map((one) => [one.name, [
        one.name, one.statements, kinds(one.subjects), kinds(one.objects), values(one.values), listed(one.qualifiers.map((key) => key.name)),
        one.examples.slice(0, 2).map((example, i) => [i ? "; " : "", listed([example.subject, example.object], ": ")])]])),
      table("Concepts", ["Name", "Entities", "Below", "Such as"], found.concepts.filter(kept).map((one) => [one.name, [
        el("a", { href: link("entity", { id: one.id }), class: "entity" }, visible(one.name)), one.members, listed(one.above),
        one.examples.map((name, i) => [i ? ", " : "", name ? el("a", { href: link("entity", { name }), class: "entity" }, visible(name)) : visible(name)])]])),
      table("Sources", ["Name", "Format", "Statements", "Rows"], found.sources.filter(kept).map((one) => [one.name, [one.name, one.format, one.statements, one.rows]])),
      table("Units", ["Unit", "Values"], found.units.map((one) => ({ name: one.unit, ...one })).filter(kept).map((one) => [one.unit, [one.unit, one.values]])));
  };
  fill(place, el("h1", {}, "What can be asked about"),
    el("p", {}, Object.entries(found.counts).filter(([name]) => ["entities", "concepts", "rows", "relations", "attributes", "qualifiers"].includes(name)).map(([name, count], i) => `${i ? " · " : ""}${number(count)} ${name}`),
      found.first ? ` · from ${found.first} to ${found.last}` : ""),
    found.note ? el("p", { class: "warning" }, found.note) : null,
    el("p", {}, el("label", { for: "filter" }, "Only names with "), el("input", { id: "filter", type: "search", oninput: (event) => draw(event.target.value.trim().toLowerCase()) })), tables);
  draw("");
}

/** Names with commas between; one in double quotes may have commas of its own. */
export const columnsOf = (text) => [...text.matchAll(/\s*(?:"((?:[^"]|"")*)"|([^,]*))\s*(?:,|$)/g)].map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain.trim()).filter(Boolean);

/** A dialog in which files are loaded; `loaded` hears the graph. */
export function filesDialog(files, loaded) {
  const key = el("input", { id: "key", type: "text" }), refs = el("input", { id: "refs", type: "text" }), said = el("div", { "aria-live": "polite" });
  const list = el("ul", {}, [...files].map((one) => el("li", {}, `${one.name}, ${number(one.size)} bytes`)));
  const add = el("input", { type: "checkbox", id: "add", checked: isScratch(), disabled: !isScratch() });
  const load = el("button", { type: "submit" }, "Load");
  const dialog = el("dialog", { "aria-labelledby": "files-title" }, el("h2", { id: "files-title" }, "Load files into a scratch graph"), list,
    el("form", { onsubmit: async (event) => {
      event.preventDefault();
      load.disabled = true;
      let graph = add.checked ? state.graph : "", done = 0;
      for (const one of files) {
        if (one.size > state.about.limits.drop) {
          said.append(el("p", { class: "error" }, `${one.name}: more than ${number(state.about.limits.drop)} bytes`));
          continue;
        }
        try {
          const report = await drop(one, { name: one.name, graph, key: key.value.trim(), refs: columnsOf(refs.value) });
          graph = report.graph;
          done += 1;
          said.append(recognised(one.name, report));
        } catch (error) {
          said.append(el("p", { class: "error" }, `${one.name}: ${error.message}${error.hint ? `; ${error.hint}` : ""}`));
        }
      }
      load.disabled = false;
      if (done) loaded(graph, [...files].map((one) => one.name).join(", "));
    } },
    el("details", {}, el("summary", {}, "Tables"), el("label", {}, "Column that names the rows ", key), el("label", {}, "Columns that are entities (commas between; \"a, b\" is one) ", refs)),
    el("label", {}, add, " beside what the scratch graph has"),
    el("p", {}, load, " ", el("button", { type: "button", onclick: () => dialog.close() }, "Close"))), said);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

const recognised = (name, report) => el("div", { class: "loaded" },
  el("p", {}, el("strong", {}, name), `: ${report.formats.join(", ")}, ${number(report.statements)} statements, ${number(report.entities)} entities`, report.skipped ? `, ${number(report.skipped)} records left out` : ""),
  report.joins.map((one) => el("p", {}, `joined: ${whole(one)}`)),
  report.problems.slice(0, 10).map((one) => el("p", { class: "warning" }, whole(one))),
  report.problems.length > 10 ? el("p", { class: "warning" }, `and ${count(report.problems.length - 10, "more problem")}`) : null, report.warnings.map((one) => el("p", { class: "warning" }, whole(one.text))));
