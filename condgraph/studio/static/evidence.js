// The evidence of an answer: a graph of its statements, and the same as a list with every source and row.

import { count, el, fill, number, whole } from "./dom.js";
import { Explorer } from "./explore.js";
import { factGroups, shown } from "./facts.js";

/** The picture, and below it the statements; `trace` has the steps of the program, the first of which that reads a statement is its step. */
export function drawEvidence(place, { facts: found, total, by_step: steps, named, searched }, trace) {
  const facts = found.map((one) => ({ ...one }));
  for (let at = steps.length - 1; at >= 0; at -= 1) for (const one of steps[at]) facts[one].step = { at, name: `${at + 1} ${trace[at]?.function ?? ""}` };
  if (!facts.length && !named.length && !searched.length) {
    fill(place, el("p", {}, "This answer says nothing of its evidence: queries in a store's own language have none."));
    return;
  }
  const graph = el("div");
  fill(place, facts.length ? graph : null,
    total > facts.length ? el("p", { class: "warning" }, `${number(total - facts.length)} more statements are not shown.`) : null,
    facts.length ? factGroups(facts, `${count(total, "statement")} that the answer rests on`) : null,
    named.length ? el("p", {}, "Found by name, or as one of all: ", named.map((one, i) => [i ? ", " : "", shown(one.entity)])) : null,
    searched.length ? [el("h3", {}, "Looked through"), el("ul", {}, searched.map((one) => el("li", {}, whole(one))))] : null);
  if (!facts.length) return;
  const explorer = new Explorer(graph, `Graph of ${count(facts.length, "statement")}; the table below says the same`);
  explorer.add(facts);
  explorer.draw();
}
