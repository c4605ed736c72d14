// The page of an entity: a graph around it that one explores, its times, its places on a map, and its statements by predicate.

import { post } from "./api.js";
import { drawTimes, timed } from "./charts.js";
import { called, count, cut, el, fill, number, visible, whole } from "./dom.js";
import { Explorer } from "./explore.js";
import { shown, sources } from "./facts.js";
import { drawMap, placesOf } from "./map.js";
import { link, place as here, state } from "./state.js";

/** Statements of one predicate that are shown at once, and of a page of them. */
const SHOWN = 20, PAGE = 200;

/** Statements of one predicate and direction: the first of them, the rest a page at a time. */
function section(id, { predicate, backward, count: total, or_more: more }, facts) {
  const body = el("tbody"), end = backward ? "subject" : "object", said = el("span", { role: "status" });
  const qualified = facts.length < total || facts.some((fact) => fact.qualifiers.length);
  let listed = 0;
  const add = (some) => {
    listed += some.length;
    body.append(...some.map((fact) => el("tr", {},
      el("td", {}, shown(fact[end]), fact.raw && !backward ? el("small", {}, " written “", whole(fact.raw), "”") : null),
      qualified ? el("td", {}, fact.qualifiers.map((one, i) => [i ? "; " : "", whole(one.key), ": ", shown(one.value)])) : null,
      el("td", { class: "source" }, sources(fact)))));
    next.hidden = listed >= total;
    next.textContent = `Show ${number(Math.min(PAGE, total - listed))} more of ${number(total)}`;
  };
  const next = el("button", { type: "button", onclick: async () => {
    next.disabled = true;
    try {
      const found = await post("entity", { id, predicate, backward, offset: listed, limit: PAGE, graph: state.graph });
      add(backward ? found.pointing : found.facts);
    } catch (error) {
      said.textContent = error.message;
    }
    next.disabled = false;
  } });
  add(facts);
  return el("section", { class: "statements", "data-predicate": cut(predicate, 200) },
    el("h3", {}, backward ? "← " : "", whole(predicate), " ", el("small", {}, number(total), more ? " or more" : "")),
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": cut(`${backward ? "What points here by" : "What is known of it:"} ${predicate}`, 200) }, el("table", {},
      el("thead", {}, el("tr", {}, [backward ? "Subject" : "Object", ...(qualified ? ["Qualifiers"] : []), "Source"].map((one) => el("th", { scope: "col" }, one)))), body)),
    next, said);
}

function sections(found, backward) {
  const groups = found.groups.filter((one) => one.backward === backward), facts = Map.groupBy(backward ? found.pointing : found.facts, (fact) => fact.predicate);
  return groups.length ? groups.map((group) => section(found.entity.id, group, facts.get(group.predicate) ?? [])) : el("p", {}, "Nothing.");
}

/** The times of an entity: of all its statements, from and to it. */
async function times(place, found) {
  const some = [...found.facts, ...found.pointing].filter(timed);
  if (!some.length) return;
  let facts = some, note = "";
  if (found.more || found.more_pointing) {
    // The page has the first of each predicate alone.
    const asked = ["subject", "object"].map((end) => post("timeline", { [end]: found.entity.id, limit: 1000, graph: state.graph }).catch(() => null));
    const lines = (await Promise.all(asked)).filter(Boolean), all = lines.flatMap((line) => line.statements.map((one) => one.fact));
    // A timeline has no values that are times.
    facts = [...new Map([...some, ...all].map((fact) => [fact.text, fact])).values()];
    note = lines.some((line) => line.total > line.statements.length) || lines.length < 2 ? "Not all of its statements with times are drawn." : "";
  }
  fill(place, el("h2", {}, "When"), note ? el("p", { class: "warning" }, note) : null);
  drawTimes(place, facts, found.entity.id);
}

/** What is known of an entity. */
export async function entityPage(place, fields) {
  fill(place, el("h1", {}, "Reading…"));
  const found = await post("entity", { id: fields.get("id") ?? undefined, name: fields.get("name") ?? undefined, graph: state.graph, limit: 1000, each: SHOWN });
  const { entity } = found, graph = el("div"), when = el("section", { class: "when" }), where = el("section", { class: "where" });
  const counted = (total, backward) => {
    const groups = found.groups.filter((one) => one.backward === backward);
    return total === null ? `${number(groups.reduce((sum, one) => sum + one.count, 0))}${groups.some((one) => one.or_more) ? " or more" : ""}` : number(total);
  };
  fill(place, el("h1", {}, whole(called(entity))),
    el("p", {}, el("code", {}, entity.id), ` · ${entity.kind}`, found.concepts.map((one) => [" · ", shown(one.object), el("small", { class: "source" }, " (", sources(one), ")")])),
    found.same.length ? el("p", { class: "warning" }, "Others of this name: ", found.same.map((one, i) => [i ? ", " : "", el("a", { href: link("entity", { id: one.id }) }, cut(one.id, 100))]), found.total_same > found.same.length ? `, and ${number(found.total_same - found.same.length)} more` : "") : null,
    graph, where, when,
    el("h2", {}, `What is known of it: ${counted(found.total, false)}`), sections(found, false),
    el("h2", {}, `What points here: ${counted(found.total_pointing, true)}`), sections(found, true),
    found.members.length ? [el("h2", {}, `Members: ${found.total_members === null ? number(found.members.length) : number(found.total_members)}`),
      entity.kind === "concept" ? el("p", {}, el("a", { href: link("browse", { c: entity.name }) }, "As rows, with filters")) : null,
      el("ul", { class: "values" }, found.members.map((one) => el("li", {}, shown(one)))), found.total_members > found.members.length ? el("p", { class: "warning" }, `The first ${number(found.members.length)} are shown.`) : null] : null);
  if (found.groups.length || found.concepts.length) {
    const address = (steps) => link("entity", { id: entity.id, v: steps.length ? JSON.stringify(steps) : "" });
    const explorer = new Explorer(graph, `What is around ${cut(visible(called(entity)), 60)}`, { keep: (steps) => {
      if (here().page === "entity" && explorer.place.isConnected) history.replaceState(null, "", address(steps));
    } });
    explorer.enter(found);
    await explorer.restore(steps(fields));
  }
  const points = placesOf([...found.facts, ...found.pointing]);
  // One place has nothing to lie beside: its statement says where it is.
  if (new Set(points.map((one) => one.at.join())).size > 1) {
    fill(where, el("h2", {}, "Where"));
    drawMap(where, points);
  }
  times(when, found);
}

/** The steps of an address; those of a wrong one are none. */
function steps(fields) {
  try {
    const found = JSON.parse(fields.get("v") ?? "[]");
    const fits = ([what, id, ...rest]) => (what === "x" ? typeof id === "string" && typeof rest[0] === "string" && typeof rest[1] === "boolean" && rest.slice(2).every(Number.isInteger) && rest.length === 4
      : what === "p" ? rest.length === 2 && rest.every(Number.isFinite) : ["h", "s", "u", "o"].includes(what));
    return Array.isArray(found) ? found.slice(0, 200).filter((one) => Array.isArray(one) && fits(one)) : [];
  } catch {
    return [];
  }
}
