// Statements as a graph that one explores: nodes are expanded by predicate, hidden, pinned; every step is undone. Many nodes of one kind
// are one box with their number, which is opened.

import { post } from "./api.js";
import { announce, called, count, cut, el, fill, isolated, number, save, visible, whole } from "./dom.js";
import { GraphPicture } from "./graph.js";
import { shown, told } from "./facts.js";
import { link, state } from "./state.js";

/** Nodes above which those of one kind become one box; the fewest that do; nodes that are left as they are. */
const CROWD = 40, LEAST = 4, ALONE = 50;
/** Statements of a predicate that are drawn at once, nodes that an entity begins with, and statements that come of one step. */
const DRAWN = 3, BEGIN = 24, STEP = 60;

const idOf = (cell, fact) => (cell?.type === "entity" ? `e:${cell.id}` : `v:${fact.subject.id}|${fact.predicate}|${cell?.text ?? ""}`);
const arrow = (backward) => (backward ? "←" : "→");

/** Nodes that are alike, by what joins them to others: `key: [ids]`. `by` is "connections", "kinds", "steps" or "nothing". */
function classes(facts, nodes, by) {
  if (by === "nothing" || nodes.size <= CROWD) return new Map();
  const step = new Map(), signs = new Map([...nodes].map(([id, { kind }]) => [id, new Set([kind])])), concept = new Map(), degree = new Map();
  for (const { from, to, fact } of facts) {
    const member = fact.kind !== "statement" ? `: ${fact.object.text}` : "";
    signs.get(from).add(`${fact.predicate} →${member}`);
    signs.get(to).add(`→ ${fact.predicate}`);
    if (fact.kind === "membership") concept.set(from, fact.object.text);
    for (const id of [from, to]) {
      degree.set(id, (degree.get(id) ?? 0) + 1);
      // Of the steps that read a statement of it the first.
      if (!(step.get(id)?.at <= fact.step?.at)) step.set(id, fact.step);
    }
  }
  // Of the kinds of entities the graph itself says most: the concept, or the predicate of a value.
  const kindOf = (id) => concept.get(id) ?? (nodes.get(id).kind === "value" ? [...signs.get(id)][1]?.slice(2) : { row: "rows", entity: "entities", concept: "concepts" }[nodes.get(id).kind]);
  const own = by === "steps" ? (id) => [step.get(id)?.name ?? ""] : (id) => [...signs.get(id)].slice(1), named = (id) => (by === "steps" ? `${kindOf(id)} · ${own(id)}` : kindOf(id));
  const found = Map.groupBy(nodes.keys(), (id) => (by === "connections" ? [...signs.get(id)].sort().join("; ") : `${nodes.get(id).kind} ${named(id)}`));
  const alone = [...found.values()].filter((ids) => ids.length < LEAST).flat().sort((a, b) => degree.get(b) - degree.get(a)).slice(ALONE);
  const groups = [...found].filter(([, ids]) => ids.length >= LEAST), rest = Map.groupBy(alone, (id) => `others ${nodes.get(id).kind}`);
  return new Map([...groups, ...rest].map(([key, ids]) => [`c:${key}`, { ids, name: named(ids[0]) ?? "values", signs: own(ids[0]) }]));
}

/** The picture with what is chosen beside it, and its buttons. */
export class Explorer {
  /** `about` says what it shows; `keep` hears the steps whenever they change, so that an address can have them. */
  constructor(place, about, { keep = null } = {}) {
    Object.assign(this, { root: place, keep, facts: new Map(), nodes: new Map(), hidden: new Set(), opened: new Set(), rests: new Map(), steps: [], past: [], groups: new Map(), by: "connections" });
    this.place = el("div", { class: "picture" });
    this.panel = el("div", { class: "chosen", role: "region", "aria-label": "What is chosen", tabindex: "-1", onkeydown: (event) => {
      if (event.key === "Escape" && this.picture.chosen !== null) this.picture.choose(this.picture.chosen, true);
    } });
    const button = (text, onclick, more = {}) => el("button", { type: "button", onclick, ...more }, text);
    this.undoButton = button("Undo", () => this.undo(), { disabled: true });
    this.allButton = button("Show hidden", () => this.step(["s"]), { hidden: true });
    this.grouping = el("label", { hidden: true }, "Group by ", el("select", { class: "grouping", onchange: (event) => this.step(["g", event.target.value]) }, ["connections", "kinds", "steps", "nothing"].map((value) => el("option", { value }, value))));
    this.said = el("span", { role: "status" });
    this.list = el("details", { class: "drawn", ontoggle: () => this.tellList() }, el("summary", {}, "What is drawn, as a list"));
    fill(place, el("div", { class: "bar" }, this.undoButton, this.allButton, this.grouping,
      button("+", () => this.picture.zoom(1 / 1.25), { "aria-label": "Larger" }), button("−", () => this.picture.zoom(1.25), { "aria-label": "Smaller" }), button("Fit", () => this.picture.fit()),
      button("SVG", () => save("graph.svg", this.picture.file()), { "data-picture": "svg" }), button("PNG", async () => save("graph.png", await this.picture.png()), { "data-picture": "png" }),
      keep ? button("Copy a link", () => this.share()) : null, this.said),
    el("div", { class: "evidence" }, this.place, this.panel), this.list);
    this.picture = new GraphPicture(this.place, `${about}. Arrow keys go from node to node, Enter opens one, Delete hides it, P pins it, U undoes.`, {
      onChoose: (id) => this.tell(id), onOpen: (id) => this.open(id),
      onMoved: (id, from) => this.moved(id, from),
      onKey: (key, id) => this.key(key, id),
    });
    this.place.picture = this; // tests, and whoever is curious on the console
    this.nothingChosen();
  }

  /** What stands in the panel; the focus stays there. */
  say(...children) {
    const held = this.panel.contains(document.activeElement);
    fill(this.panel, ...children);
    if (held) this.panel.focus({ preventScroll: true });
  }

  /** Where a focus goes whose place is gone. */
  refocus(held) {
    if (held && !this.root.contains(document.activeElement)) this.place.querySelector("[tabindex='0']")?.focus({ preventScroll: true });
  }

  nothingChosen() {
    this.say(el("p", {}, "Choose a box: what is known of it stands here. A dashed box holds as many as its number says: open it by a double click or Enter."));
  }

  // -- what there is ------------------------------------------------------------------------------------------------------

  node(cell, fact) {
    const id = idOf(cell, fact);
    if (!this.nodes.has(id)) this.nodes.set(id, { cell, kind: cell?.type === "entity" ? cell.kind : "value" });
    return id;
  }

  /** Take statements; those that are known are not doubled. */
  add(facts) {
    for (const fact of facts) {
      const from = this.node(fact.subject, fact), to = this.node(fact.object, fact);
      this.facts.set(JSON.stringify([from, to, fact.text]), { from, to, fact });
    }
  }

  /** An entity as the API tells it: of frequent predicates a box with a number. */
  enter(found) {
    this.center = `e:${found.entity.id}`;
    this.nodes.set(this.center, { cell: found.entity, kind: found.entity.kind });
    const facts = [...found.concepts, ...found.facts.map((fact) => ({ ...fact, backward: false })), ...found.pointing.map((fact) => ({ ...fact, backward: true }))];
    let room = BEGIN;
    this.add(found.concepts);
    for (const { predicate, backward, count: total } of found.groups) {
      const own = facts.filter((fact) => fact.backward === backward && fact.predicate === predicate);
      if (total <= Math.min(DRAWN, own.length, room)) {
        this.add(own);
        room -= total;
      } else this.rests.set(JSON.stringify([this.center, predicate, backward]), { id: this.center, predicate, backward, total, taken: 0 });
    }
    this.draw();
    this.picture.choose(this.center);
  }

  draw() {
    const facts = [...this.facts.values()].filter(({ from, to }) => !this.hidden.has(from) && !this.hidden.has(to));
    const used = new Set(facts.flatMap(({ from, to }) => [from, to]));
    if (this.center && !this.hidden.has(this.center)) used.add(this.center);
    const nodes = new Map([...this.nodes].filter(([id]) => used.has(id)));
    // Of all statements: what is hidden makes no other groups.
    this.groups = this.center ? new Map() : classes([...this.facts.values()], this.nodes, this.by);
    this.grouping.hidden = Boolean(this.center) || nodes.size <= CROWD;
    this.grouping.querySelector("[value=steps]").hidden = !facts.some(({ fact }) => fact.step);
    const group = new Map();
    for (const [key, { ids }] of this.groups) for (const id of ids) if (!this.opened.has(id)) group.set(id, key);
    for (const key of this.groups.keys()) if (this.hidden.has(key)) for (const [id, own] of group) if (own === key) used.delete(id);
    const seen = [...nodes].filter(([id]) => !group.has(id)).map(([id, { cell, kind }]) => ({ id, kind, label: this.nameOf(cell), said: `${isolated(this.nameOf(cell))}, ${kind}` }));
    for (const [key, { ids, name, signs }] of this.groups) {
      const closed = ids.filter((id) => used.has(id) && group.get(id) === key).length;
      if (closed && !this.hidden.has(key)) seen.push({ id: key, kind: "group", label: `${number(closed)} × ${isolated(visible(name))}`, said: `${number(closed)} ${isolated(visible(name))}, closed: ${signs.map(isolated).join(", ")}` });
    }
    const edges = new Map(), join = (from, to, label) => {
      const key = JSON.stringify([from, to]);
      edges.set(key, { from, to, labels: new Set([...(edges.get(key)?.labels ?? []), label]) });
    };
    for (const { from, to, fact } of facts) join(group.get(from) ?? from, group.get(to) ?? to, fact.predicate);
    for (const [key, { id, predicate, backward, total, taken }] of this.rests) {
      if (!used.has(id) || this.hidden.has(key) || total <= taken) continue;
      seen.push({ id: key, kind: "group", label: `${number(total - taken)}${taken ? " more" : ""}`, said: `${number(total - taken)} ${taken ? "more " : ""}statements ${arrow(backward)} ${isolated(visible(predicate))}, closed` });
      join(backward ? key : id, backward ? id : key, predicate);
    }
    this.seen = seen;
    this.joined = [...edges.values()].map(({ from, to, labels }) => ({ from, to, label: labels.size > 1 ? [...labels].map((one) => isolated(visible(one))).join(", ") : visible([...labels][0]) }));
    this.picture.show(seen, this.joined);
    this.undoButton.disabled = !this.past.length;
    this.allButton.hidden = !this.hidden.size;
    this.tellList();
  }

  nameOf = (cell) => (cell?.type === "entity" ? called(cell) : cell?.text || "(no value)");

  // -- steps ----------------------------------------------------------------------------------------------------------------

  remember() {
    this.past.push({ facts: new Map(this.facts), hidden: new Set(this.hidden), opened: new Set(this.opened), rests: new Map([...this.rests].map(([key, one]) => [key, { ...one }])), by: this.by, steps: this.steps, places: this.picture.places() });
  }

  undo() {
    const before = this.past.pop(), held = this.root.contains(document.activeElement);
    if (!before) return;
    const { places, ...kept } = before, chosen = this.picture.chosen;
    Object.assign(this, kept);
    this.grouping.querySelector("select").value = this.by;
    this.picture.restore(places);
    this.draw();
    if (!this.seen.some((one) => one.id === chosen)) {
      this.picture.chosen = null;
      this.nothingChosen();
    } else this.tell(chosen);
    this.refocus(held);
    this.keep?.(this.steps);
    announce(`Undone. ${count(this.seen.length, "box", "boxes")}`);
  }

  /** Do a step, as an address writes it: `["x", id, predicate, backward, offset, limit]` expands, h hides, s shows all, p pins, o opens, g groups. */
  async step(step, quiet = false) {
    const [what, id, ...rest] = step, held = this.root.contains(document.activeElement);
    if (this.busy) return;
    this.busy = true;
    try {
      const fetched = what === "x" ? await this.fetch(id, ...rest) : null;
      this.remember();
      if (fetched) this.expanded(id, fetched, ...rest);
      else if (what === "h") this.hidden.add(id);
      else if (what === "s") this.hidden.clear();
      else if (what === "p") this.picture.move(id, ...rest);
      else if (what === "u") this.picture.pin(id, false);
      else if (what === "g") this.by = id;
      else if (what === "o") for (const one of this.groups.get(id)?.ids.filter((one) => !this.opened.has(one)).slice(0, STEP) ?? []) this.opened.add(one);
      this.steps = [...this.steps, step];
      this.draw();
      if (!quiet) this.after(what, id);
      this.refocus(held);
    } catch (error) {
      this.said.textContent = error.message;
    } finally {
      this.busy = false;
    }
  }

  after(what, id) {
    const kept = this.seen.some((one) => one.id === id) ? id : what === "x" ? this.picture.chosen : null;
    if (kept !== null && this.seen.some((one) => one.id === kept)) this.picture.choose(kept);
    else {
      this.picture.chosen = null;
      this.picture.draw();
      this.nothingChosen();
    }
    this.keep?.(this.steps);
    announce(`${count(this.seen.length, "box", "boxes")}, ${count(this.joined.length, "edge")}`);
  }

  fetch = (id, predicate, backward, offset, limit) => post("entity", { id: id.slice(2), predicate, backward, offset, limit, graph: state.graph });

  expanded(id, found, predicate, backward, offset, limit) {
    const facts = backward ? found.pointing : found.facts, key = JSON.stringify([id, predicate, backward]);
    const total = found.groups.find((one) => one.predicate === predicate && one.backward === backward)?.count ?? facts.length;
    this.add(facts);
    for (const fact of facts) for (const cell of [fact.subject, fact.object]) {
      this.hidden.delete(idOf(cell, fact));
      this.opened.add(idOf(cell, fact));
    }
    this.rests.set(key, { id, predicate, backward, total, taken: Math.min(total, offset + limit) });
  }

  expand(id, predicate, backward, most) {
    const taken = this.rests.get(JSON.stringify([id, predicate, backward]))?.taken ?? 0;
    return this.step(["x", id, predicate, backward, taken, Math.max(1, Math.min(5000, most))]);
  }

  open(id) {
    const rest = this.rests.get(id);
    if (rest) return this.expand(rest.id, rest.predicate, rest.backward, STEP);
    if (this.groups.has(id)) return this.step(["o", id]);
    return this.panel.querySelector("button, a")?.focus();
  }

  moved(id, from) {
    const places = this.picture.places(), { x, y } = places.get(id);
    this.remember();
    this.past.at(-1).places.set(id, from);
    this.steps = [...this.steps, ["p", id, x, y]];
    this.undoButton.disabled = false;
    this.keep?.(this.steps);
  }

  key(key, id) {
    if (key === "Delete" || key === "Backspace") this.step(["h", id]);
    else if (key === "p") this.pin(id);
    else if (key === "u") this.undo();
    else return false;
    return true;
  }

  pin(id) {
    const box = this.picture.boxes.get(id);
    return this.step(box.pinned ? ["u", id] : ["p", id, box.x, box.y]);
  }

  /** The steps of an address, one after the other. */
  async restore(steps) {
    for (const step of steps) await this.step(step, true);
    this.picture.fit();
  }

  async share() {
    try {
      await navigator.clipboard.writeText(location.href);
      this.said.textContent = "The link is copied.";
    } catch {
      this.said.textContent = "The address of the page is the link.";
    }
  }

  // -- what is told ---------------------------------------------------------------------------------------------------------

  async tell(id) {
    const one = this.nodes.get(id), rest = this.rests.get(id), group = this.groups.get(id);
    const button = (text, onclick) => el("button", { type: "button", onclick }, text);
    const common = el("p", { class: "bar" }, button("Hide", () => this.step(["h", id])), button(this.picture.boxes.get(id)?.pinned ? "Let go" : "Pin", () => this.pin(id)));
    if (rest) {
      const left = rest.total - rest.taken;
      this.say(el("p", {}, el("strong", {}, `${number(left)} ${rest.taken ? "more " : ""}statements`), ` ${arrow(rest.backward)} `, whole(rest.predicate)), this.taking(rest.id, rest.predicate, rest.backward, left), common);
    } else if (group) {
      const closed = group.ids.filter((other) => !this.opened.has(other));
      this.say(el("p", {}, el("strong", {}, number(closed.length), " ", el("bdi", {}, visible(group.name)))), el("p", {}, el("small", {}, group.signs.map((text, i) => [i ? ", " : "", el("bdi", {}, visible(text))]))),
        el("p", {}, button(closed.length > STEP ? `Open ${STEP}` : "Open", () => this.open(id))), common,
        el("ul", {}, closed.slice(0, STEP).map((other) => el("li", {}, shown(this.nodes.get(other).cell)))), closed.length > STEP ? el("p", {}, `and ${number(closed.length - STEP)} more`) : null);
    } else if (one) {
      const own = [...this.facts.values()].filter(({ from, to }) => from === id || to === id), menu = el("div", { class: "menu" });
      this.say(el("p", {}, el("strong", {}, shown(one.cell)), el("small", {}, ` ${one.kind}`)), common, menu,
        el("details", { open: !this.center }, el("summary", {}, count(own.length, "statement that is drawn", "statements that are drawn")), el("ul", {}, own.slice(0, STEP).map(({ fact }) => el("li", {}, told(fact)))), own.length > STEP ? el("p", {}, `and ${number(own.length - STEP)} more`) : null));
      if (one.kind !== "value") await this.offer(id, menu);
    }
  }

  /** How many statements of a predicate are drawn, of those that are left. */
  taking(id, predicate, backward, left) {
    const many = el("input", { type: "number", min: "1", max: "5000", value: String(Math.max(1, Math.min(left, STEP))), "aria-label": "How many" });
    return el("form", { class: "bar", onsubmit: (event) => (event.preventDefault(), this.expand(id, predicate, backward, Number(many.value) || 1)) }, many, el("button", { type: "submit", "aria-label": `Show ${visible(predicate)} ${backward ? "to it" : "from it"}` }, "Show"));
  }

  /** The predicates of a node, with their direction and numbers, and what is not drawn of them. */
  async offer(id, place) {
    let found = this.known?.get(id);
    try {
      found ??= await post("entity", { id: id.slice(2), each: 1, limit: 1, graph: state.graph });
    } catch (error) {
      fill(place, el("p", { class: "error" }, error.message));
      return;
    }
    (this.known ??= new Map()).set(id, found);
    fill(place, el("ul", { class: "ways" }, found.groups.map(({ predicate, backward, count: total, or_more: more }) => {
      const drawn = [...this.facts.values()].filter((one) => one.fact.predicate === predicate && (backward ? one.to : one.from) === id).length;
      const left = total - Math.max(drawn, this.rests.get(JSON.stringify([id, predicate, backward]))?.taken ?? 0);
      return el("li", {}, el("span", {}, `${arrow(backward)} `, el("bdi", {}, visible(predicate)), " ", el("small", {}, number(total), more ? " or more" : "")), left > 0 || more ? this.taking(id, predicate, backward, left) : null);
    })));
    if (!found.groups.length) fill(place, el("p", {}, "Nothing more is known of it."));
  }

  /** The same as the picture, in words. */
  tellList() {
    if (!this.list.open || !this.seen) return;
    const names = new Map(this.seen.map((one) => [one.id, one]));
    const name = (id) => el("button", { type: "button", class: "near", onclick: () => this.picture.choose(id) }, cut(names.get(id).said, 100));
    const alone = this.seen.filter(({ id }) => !this.joined.some(({ from, to }) => from === id || to === id));
    fill(this.list, this.list.firstChild, el("ul", {}, this.joined.map(({ from, to, label }) => el("li", {}, name(from), " ", el("bdi", {}, label), " → ", name(to))), alone.map(({ id }) => el("li", {}, name(id)))));
  }
}
