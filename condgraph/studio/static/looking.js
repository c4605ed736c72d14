// Pages that look: an entity, the schema, the history, and files that are loaded.

import { drop, get, post } from "./api.js";
import { called, count, cut, el, fill, listed, number, visible, whole } from "./dom.js";
import { shown, sources } from "./evidence.js";
import { forgetAll, link, past, state } from "./state.js";
import { NAMES } from "./answer.js";

/** Statements of one predicate that are shown at once. */
const SHOWN = 20;

/** Statements under a heading for each predicate; `end` is the end of a statement that is shown. */
function grouped(facts, end, title) {
  if (!facts.length) return el("p", {}, "Nothing.");
  return [...Map.groupBy(facts, (fact) => fact.predicate)].map(([predicate, own]) => {
    const qualified = own.some((fact) => fact.qualifiers.length), body = el("tbody");
    const add = (some) => body.append(...some.map((fact) => el("tr", {},
      el("td", {}, shown(fact[end]), fact.raw && end === "object" ? el("small", {}, " written “", whole(fact.raw), "”") : null),
      qualified ? el("td", {}, fact.qualifiers.map((one, i) => [i ? "; " : "", whole(one.key), ": ", shown(one.value)])) : null,
      el("td", { class: "source" }, sources(fact)))));
    add(own.slice(0, SHOWN));
    const more = el("button", { type: "button", onclick: () => (more.remove(), add(own.slice(SHOWN))) }, `Show ${number(own.length - SHOWN)} more`);
    return el("section", { class: "statements", "data-predicate": cut(predicate, 200) }, el("h3", {}, whole(predicate), " ", el("small", {}, number(own.length))),
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": cut(`${title} ${predicate}`, 200) }, el("table", {},
        el("thead", {}, el("tr", {}, [end === "object" ? "Object" : "Subject", ...(qualified ? ["Qualifiers"] : []), "Source"].map((one) => el("th", { scope: "col" }, one)))), body)),
      own.length > SHOWN ? more : null);
  });
}

/** What is known of an entity. */
export async function entityPage(place, fields) {
  fill(place, el("p", {}, "Reading…"));
  const found = await post("entity", { id: fields.get("id") ?? undefined, name: fields.get("name") ?? undefined, graph: state.graph, limit: 300 });
  const { entity } = found;
  const counted = (total, facts, more) => (total === null ? `${number(facts.length)}${more ? " or more" : ""}` : number(total));
  const about = `What is known of it: ${counted(found.total, found.facts, found.more)}`;
  const pointing = `What points here: ${counted(found.total_pointing, found.pointing, found.more_pointing)}`;
  fill(place, el("h1", {}, whole(called(entity))),
    el("p", {}, el("code", {}, entity.id), ` · ${entity.kind}`, found.concepts.map((one) => [" · ", shown(one.object), el("small", { class: "source" }, " (", sources(one), ")")])),
    found.same.length ? el("p", { class: "warning" }, "Others of this name: ", found.same.map((one, i) => [i ? ", " : "", el("a", { href: link("entity", { id: one.id }) }, cut(one.id, 100))]), found.total_same > found.same.length ? `, and ${number(found.total_same - found.same.length)} more` : "") : null,
    el("h2", {}, about), grouped(found.facts, "object", "What is known of it:"),
    found.more ? el("p", { class: "warning" }, "There is more than is shown.") : null,
    el("h2", {}, pointing), grouped(found.pointing, "subject", "What points here:"),
    found.more_pointing ? el("p", { class: "warning" }, "There is more than is shown.") : null,
    found.members.length ? [el("h2", {}, `Members: ${counted(found.total_members, found.members, false)}`), el("ul", { class: "values" }, found.members.map((one) => el("li", {}, shown(one)))), found.total_members > found.members.length ? el("p", { class: "warning" }, `The first ${number(found.members.length)} are shown.`) : null] : null);
}

const kinds = (found) => found.map((one, i) => [i ? ", " : "", listed([one.name || one.sort]), ` (${number(one.statements)})`]);
const values = (found) => found.map((one, i) => [i ? "; " : "", one.type, one.unit !== "1" ? [" in ", listed([one.unit])] : "", ` (${number(one.count)})${one.first ? `, ${one.first} to ${one.last}` : ""}`]);

/** What can be asked about. */
export async function schemaPage(place) {
  fill(place, el("p", {}, "Reading…"));
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

/** Questions that were asked in this browser. */
export function historyPage(place) {
  const found = past();
  fill(place, el("h1", {}, "History"), el("p", {}, "What was asked in this browser; it is kept here alone. "),
    found.length ? el("button", { type: "button", onclick: () => (forgetAll(), historyPage(place)) }, "Forget all") : el("p", {}, "Nothing was asked yet."),
    el("ol", { class: "history" }, found.map((one) => el("li", {}, el("a", { href: link("ask", { l: one.language === "auto" ? "" : one.language, q: one.text, t: one.table, g: one.graph ?? "" }) }, el("code", {}, cut(one.text, 300)), one.table ? [" ", el("code", {}, cut(one.table, 300))] : null),
      el("small", {}, ` ${NAMES[one.language] ?? one.language} · ${new Date(one.when).toLocaleString()} · ${count(one.total, "answer")}`)))));
}

/** Names with commas between; one in double quotes may have commas of its own. */
export const columnsOf = (text) => [...text.matchAll(/\s*(?:"((?:[^"]|"")*)"|([^,]*))\s*(?:,|$)/g)].map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain.trim()).filter(Boolean);

/** A dialog in which files are loaded; `loaded` hears the graph. */
export function filesDialog(files, loaded) {
  const key = el("input", { id: "key", type: "text" }), refs = el("input", { id: "refs", type: "text" }), said = el("div", { "aria-live": "polite" });
  const list = el("ul", {}, [...files].map((one) => el("li", {}, `${one.name}, ${number(one.size)} bytes`)));
  const add = el("input", { type: "checkbox", id: "add", checked: Boolean(state.graph), disabled: !state.graph });
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
