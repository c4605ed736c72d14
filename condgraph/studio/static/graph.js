// A picture of nodes and edges (SVG): boxes with their text inside, which mouse, finger and keyboard reach. What is drawn keeps its place
// when more is drawn. SPARQL's page draws with it, too: its colours are those of a style sheet, or else those here.

import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } from "./vendor-drawing.js";
import { colour, cut, el, onColours, svg } from "./dom.js";

const COLOURS = {
  back: "#ffffff", panel: "#f5f6f8", text: "#1b1f24", muted: "#55606e", line: "#b6bec9", accent: "#0b5cad", "on-accent": "#ffffff",
  entity: "#2f6fb3", value: "#8a6d1d", concept: "#7a1fa2", row: "#2e7d4f",
};
const FONT = "system-ui, sans-serif", HEIGHT = 26, LETTERS = 26;
/** Pixels between boxes, across and down. */
const GAP = [16, 12];
/** Edges of one name at one node that have their name beside them. */
const NAMED = 2;

const measuring = document.createElement("canvas").getContext("2d");
const widthOf = (text, size) => {
  measuring.font = `${size}px ${FONT}`;
  return measuring.measureText(text).width;
};
const overlap = (one, other, [across, down] = GAP) => Math.abs(one.x - other.x) < (one.w + other.w) / 2 + across && Math.abs(one.y - other.y) < (one.h + other.h) / 2 + down;

/** Where the line from the middle of a box leaves it. */
function border(box, to) {
  const dx = to.x - box.x, dy = to.y - box.y;
  const part = Math.min(dx ? (box.w / 2 + 2) / Math.abs(dx) : Infinity, dy ? (box.h / 2 + 2) / Math.abs(dy) : Infinity, 1);
  return { x: box.x + dx * part, y: box.y + dy * part };
}

let pictures = 0;

/**
 * A picture in `place`. `show` takes nodes `{id, label, kind, said}` (kinds: entity, value, concept, row, group) and edges
 * `{from, to, label}`; `onChoose` hears the id of a node, `onOpen` that of one that is to be opened, `onMoved` that of one that was moved.
 */
export class GraphPicture {
  constructor(place, label, { onChoose = () => {}, onOpen = () => {}, onMoved = () => {}, onKey = () => {} } = {}) {
    Object.assign(this, { nodes: [], edges: [], boxes: new Map(), drawn: new Map(), chosen: null, onChoose, onOpen, onMoved, onKey });
    this.layers = ["edges", "nodes", "names"].map((name) => svg("g", { class: name, "aria-hidden": name === "nodes" ? "false" : "true" }));
    this.arrow = `arrow-${pictures += 1}`;
    this.tip = svg("path", { d: "M0,0 L8,4 L0,8 z" });
    this.svg = svg("svg", { role: "group", "aria-label": label, "font-family": FONT },
      svg("defs", {}, svg("marker", { id: this.arrow, viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto-start-reverse" }, this.tip)), ...this.layers);
    this.listen();
    place.append(this.svg);
    onColours(this.svg, () => this.draw());
  }

  /** Draw these from now on. Nodes that were drawn stay where they are; others find a place beside what they are joined to. */
  show(nodes, edges) {
    const known = new Set(nodes.map((one) => one.id));
    this.nodes = nodes;
    this.edges = edges.filter((one) => known.has(one.from) && known.has(one.to));
    for (const one of nodes) {
      const text = cut(one.label, LETTERS), old = this.boxes.get(one.id);
      const size = { text, w: Math.max(34, widthOf(text, 12) * (one.kind === "group" ? 1.08 : 1) + 20), h: HEIGHT };
      this.boxes.set(one.id, { x: null, y: null, pinned: false, ...old, ...size });
    }
    const placed = nodes.filter((one) => this.boxes.get(one.id).x !== null), fresh = nodes.filter((one) => this.boxes.get(one.id).x === null);
    if (!placed.length) this.arrange(fresh);
    else this.join(fresh, placed);
    this.draw();
    const view = this.view, seen = view && fresh.every(({ id }) => {
      const box = this.boxes.get(id);
      return Math.abs(box.x - view.x - view.w / 2) < (view.w - box.w) / 2 && Math.abs(box.y - view.y - view.h / 2) < (view.h - box.h) / 2;
    });
    if (!seen) this.fit();
  }

  /** The first places: forces, then room for every box. */
  arrange(nodes) {
    const items = nodes.map(({ id }) => ({ id, w: this.boxes.get(id).w })), degree = new Map();
    for (const { from, to } of this.edges) for (const id of [from, to]) degree.set(id, (degree.get(id) ?? 0) + 1);
    const links = this.edges.map(({ from, to }) => ({ source: from, target: to }));
    forceSimulation(items).force("link", forceLink(links).id((one) => one.id).distance(({ source, target }) => 60 + 0.35 * (source.w + target.w))).force("charge", forceManyBody().strength(-380).distanceMax(280))
      .force("collide", forceCollide((one) => 12 + one.w / 5)).force("x", forceX().strength(0.09)).force("y", forceY().strength(0.13)).stop().tick(250);
    const taken = [];
    for (const { id, x, y } of items.sort((a, b) => (degree.get(b.id) ?? 0) - (degree.get(a.id) ?? 0))) {
      const box = this.boxes.get(id);
      for (let step = 0; step < 4000; step += 1) {
        const far = 8 * Math.sqrt(step), angle = step * 2.399963;
        Object.assign(box, { x: Math.round(1.7 * x + 1.6 * far * Math.cos(angle)), y: Math.round(y + far * Math.sin(angle)) });
        if (!taken.some((other) => overlap(box, other))) break;
      }
      taken.push(box);
    }
  }

  /** Places for nodes that come: in rings around a neighbour, first away from the rest. */
  join(fresh, placed) {
    const taken = placed.map(({ id }) => this.boxes.get(id)), mean = (key) => taken.reduce((sum, one) => sum + one[key], 0) / taken.length;
    const middle = { x: mean("x"), y: mean("y") };
    const beside = (id) => this.edges.flatMap(({ from, to }) => (from === id ? [to] : to === id ? [from] : [])).map((other) => this.boxes.get(other)).find((one) => one?.x != null);
    for (const { id } of fresh) {
      const box = this.boxes.get(id), anchor = beside(id) ?? { ...middle, w: 0 };
      const out = anchor.x === middle.x && anchor.y === middle.y ? 0 : Math.atan2(anchor.y - middle.y, anchor.x - middle.x);
      place: for (let ring = 0; ring < 60; ring += 1) {
        const angles = 12 + 5 * ring, radius = 90 + 32 * ring;
        for (let step = 0; step < angles; step += 1) {
          const angle = out + (step % 2 ? 1 : -1) * Math.ceil(step / 2) * 2 * Math.PI / angles;
          Object.assign(box, { x: Math.round(anchor.x + (1.4 * radius + anchor.w / 2) * Math.cos(angle)), y: Math.round(anchor.y + radius * Math.sin(angle)) });
          if (!taken.some((other) => overlap(box, other))) break place;
        }
      }
      taken.push(box);
    }
  }

  draw() {
    const colours = Object.fromEntries(Object.entries(COLOURS).map(([name, usual]) => [name, colour(`--${name}`) || usual]));
    const [edges, nodes, names] = this.layers, known = new Set(this.nodes.map((one) => one.id));
    this.colours = colours;
    this.tip.setAttribute("fill", colours.muted);
    for (const [id, group] of this.drawn) {
      if (known.has(id)) continue;
      group.remove();
      this.drawn.delete(id);
    }
    const first = known.has(this.chosen) ? this.chosen : this.nodes[0]?.id;
    for (const one of this.nodes) {
      const box = this.boxes.get(one.id), chosen = one.id === this.chosen, hue = colours[one.kind] ?? colours.muted, group = this.drawn.get(one.id) ?? svg("g", { class: "node", role: "button", cursor: "pointer" });
      if (!this.drawn.has(one.id)) {
        group.dataset.id = one.id;
        group.append(svg("rect", {}), svg("text", { "text-anchor": "middle", y: 4, "font-size": 12, "unicode-bidi": "isolate" }), svg("title", {}));
        this.drawn.set(one.id, group);
      }
      const [shape, text, title] = group.children;
      const look = {
        x: -box.w / 2, y: -box.h / 2, width: box.w, height: box.h, rx: { value: 3, row: 0, concept: 13 }[one.kind] ?? 7,
        fill: chosen ? colours.accent : one.kind === "group" ? colours.panel : colours.back, stroke: chosen ? colours.accent : hue, "stroke-width": box.pinned ? 3.5 : one.kind === "group" ? 2.5 : 1.5,
        "stroke-dasharray": one.kind === "group" ? "5 3" : "none",
      };
      for (const [name, value] of Object.entries(look)) shape.setAttribute(name, value);
      text.setAttribute("fill", chosen ? colours["on-accent"] : colours.text);
      text.setAttribute("font-weight", one.kind === "group" ? 600 : 400);
      text.textContent = box.text;
      title.textContent = cut(one.said ?? one.label, 400);
      group.setAttribute("aria-label", cut(one.said ?? one.label, 200));
      group.setAttribute("aria-pressed", chosen);
      group.setAttribute("tabindex", one.id === first ? 0 : -1);
      group.setAttribute("transform", `translate(${box.x} ${box.y})`);
      if (group.parentNode !== nodes) nodes.append(group);
    }
    edges.replaceChildren();
    names.replaceChildren();
    const labels = [], counted = new Map(), boxes = this.nodes.map(({ id }) => this.boxes.get(id));
    for (const { from, to, label } of this.edges) {
      const a = this.boxes.get(from), b = this.boxes.get(to), begin = border(a, b), end = border(b, a), lit = this.chosen === from || this.chosen === to;
      const d = from === to ? `M${a.x - 8},${a.y - a.h / 2} C${a.x - 40},${a.y - 60} ${a.x + 40},${a.y - 60} ${a.x + 8},${a.y - a.h / 2 - 2}` : `M${begin.x},${begin.y} L${end.x},${end.y}`;
      edges.append(svg("path", { d, fill: "none", stroke: lit ? colours.accent : colours.line, "stroke-width": lit ? 2 : 1.3, "marker-end": `url(#${this.arrow})` }));
      const keys = [JSON.stringify([from, label]), JSON.stringify([label, to])];
      if (!label || keys.some((key) => (counted.get(key) ?? 0) >= NAMED)) continue;
      const text = cut(label, LETTERS), size = { w: widthOf(text, 11), h: 13, text };
      const free = from === to ? { ...size, x: a.x, y: a.y - 54 } : [0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74].map((part) => ({ ...size, x: begin.x + part * (end.x - begin.x), y: begin.y + part * (end.y - begin.y) }))
        .find((one) => ![...boxes, ...labels].some((other) => overlap(one, other, [2, 1])));
      if (!free) continue;
      labels.push(free);
      for (const key of keys) counted.set(key, (counted.get(key) ?? 0) + 1);
    }
    names.append(...labels.map(({ x, y, text }) => svg("text", { x, y: y + 4, "text-anchor": "middle", "font-size": 11, "unicode-bidi": "isolate", fill: colours.muted, stroke: colours.back, "stroke-width": 4, "paint-order": "stroke" }, text)));
  }

  /** `still`: it is under the pointer, where it stays. */
  choose(id, focus = false, still = false) {
    this.chosen = id;
    this.draw();
    const group = this.drawn.get(id);
    if (focus && group) group.focus({ preventScroll: true });
    if (group && !still) this.within(this.boxes.get(id));
    if (id !== null) this.onChoose(id);
  }

  pin(id, pinned) {
    this.boxes.get(id).pinned = pinned;
    this.draw();
  }

  /** Where everything is, to come back to it (`places` of `restore`). */
  places() {
    return new Map([...this.boxes].map(([id, box]) => [id, { ...box }]));
  }

  restore(places) {
    this.boxes = new Map([...places].map(([id, box]) => [id, { ...box }]));
  }

  move(id, x, y) {
    Object.assign(this.boxes.get(id), { x, y, pinned: true });
    this.draw();
  }

  // -- what is seen -----------------------------------------------------------------------------------------------------

  bounds() {
    const boxes = this.nodes.map(({ id }) => this.boxes.get(id)), pad = 24;
    if (!boxes.length) return { x: -50, y: -50, w: 100, h: 100 };
    const x = Math.min(...boxes.map((one) => one.x - one.w / 2)) - pad, y = Math.min(...boxes.map((one) => one.y - one.h / 2)) - pad - 20;
    return { x, y, w: Math.max(...boxes.map((one) => one.x + one.w / 2)) + pad - x, h: Math.max(...boxes.map((one) => one.y + one.h / 2)) + pad - y };
  }

  look(view) {
    this.view = view;
    this.svg.setAttribute("viewBox", [view.x, view.y, view.w, view.h].map((one) => Math.round(10 * one) / 10).join(" "));
  }

  /** See all, no larger than it is. */
  fit() {
    const { x, y, w, h } = this.bounds(), width = this.svg.clientWidth || 800, height = this.svg.clientHeight || 400, scale = Math.min(1.1, width / w, height / h);
    this.look({ x: x + w / 2 - width / scale / 2, y: y + h / 2 - height / scale / 2, w: width / scale, h: height / scale });
  }

  zoom(by, at = 0.5, down = 0.5) {
    const { x, y, w, h } = this.view, most = 6 * Math.max(this.bounds().w, 400);
    if (w * by < 120 || w * by > most) return;
    this.look({ x: x + at * w * (1 - by), y: y + down * h * (1 - by), w: w * by, h: h * by });
  }

  /** A box comes into sight. */
  within(box) {
    const { x, y, w, h } = this.view, near = (from, size, at, half) => (at - half < from ? at - half - 10 : at + half > from + size ? at + half + 10 - size : from);
    this.look({ x: near(x, w, box.x, box.w / 2), y: near(y, h, box.y, box.h / 2), w, h });
  }

  listen() {
    const drawing = this.svg;
    const idAt = (event) => event.target.closest?.(".node")?.dataset.id ?? null;
    let held = null;
    drawing.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      const id = idAt(event);
      held = { id, from: [event.clientX, event.clientY], moved: false, box: id === null ? null : { ...this.boxes.get(id) }, view: this.view, scale: this.view.w / (drawing.clientWidth || 1) };
      drawing.setPointerCapture(event.pointerId);
    });
    drawing.addEventListener("pointermove", (event) => {
      if (!held) return;
      const dx = event.clientX - held.from[0], dy = event.clientY - held.from[1];
      held.moved ||= Math.hypot(dx, dy) > 5;
      if (!held.moved) return;
      if (held.id === null) this.look({ ...held.view, x: held.view.x - dx * held.scale, y: held.view.y - dy * held.scale });
      else this.move(held.id, Math.round(held.box.x + dx * held.scale), Math.round(held.box.y + dy * held.scale));
    });
    drawing.addEventListener("pointerup", () => {
      const was = held;
      held = null;
      if (!was || was.id === null) return;
      if (was.moved) this.onMoved(was.id, was.box);
      else this.choose(was.id, true, true);
    });
    drawing.addEventListener("pointercancel", () => {
      held = null;
    });
    // A click without a pointer: what screen readers do.
    drawing.addEventListener("click", (event) => {
      const id = idAt(event);
      if (id !== null && !event.detail) this.choose(id, true);
    });
    drawing.addEventListener("dblclick", (event) => {
      const at = document.elementFromPoint(event.clientX, event.clientY)?.closest?.(".node")?.dataset.id;
      if (at !== undefined) this.onOpen(at);
    });
    drawing.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const frame = drawing.getBoundingClientRect();
      this.zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15, (event.clientX - frame.left) / frame.width, (event.clientY - frame.top) / frame.height);
    }, { passive: false });
    drawing.addEventListener("keydown", (event) => {
      const id = idAt(event), ways = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
      if (id === null || event.ctrlKey || event.metaKey || event.altKey) return;
      if (ways[event.key]) this.step(id, ways[event.key]);
      else if (event.key === "Enter") this.choose(id, true), this.onOpen(id);
      else if (event.key === " ") this.choose(id, true);
      else if (event.key === "+" || event.key === "-") this.zoom(event.key === "+" ? 1 / 1.2 : 1.2);
      else if (!this.onKey(event.key, id)) return;
      event.preventDefault();
    });
  }

  /** To the next node in a direction. */
  step(id, [dx, dy]) {
    const here = this.boxes.get(id);
    let best = null, least = Infinity;
    for (const one of this.nodes) {
      const box = this.boxes.get(one.id), along = (box.x - here.x) * dx + (box.y - here.y) * dy, aside = Math.abs((box.x - here.x) * dy) + Math.abs((box.y - here.y) * dx);
      if (one.id === id || along <= 0 || along + 2.5 * aside >= least) continue;
      least = along + 2.5 * aside;
      best = one.id;
    }
    if (best !== null) this.choose(best, true);
  }

  // -- files ------------------------------------------------------------------------------------------------------------

  /** The whole picture as a file of SVG. */
  file() {
    const copy = this.svg.cloneNode(true), { x, y, w, h } = this.bounds();
    for (const [name, value] of Object.entries({ viewBox: `${x} ${y} ${w} ${h}`, width: Math.ceil(w), height: Math.ceil(h), role: "img" })) copy.setAttribute(name, value);
    for (const one of copy.querySelectorAll(".node")) for (const name of ["tabindex", "role", "aria-pressed", "cursor", "data-id"]) one.removeAttribute(name);
    copy.prepend(svg("rect", { x, y, width: w, height: h, fill: this.colours.back }));
    return new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
  }

  /** The whole picture as a file of PNG, at most 8,000 pixels wide or high. */
  async png() {
    const { w, h } = this.bounds(), scale = Math.min(2, 8000 / w, 8000 / h), image = new Image(), address = URL.createObjectURL(this.file());
    image.src = address;
    await image.decode();
    URL.revokeObjectURL(address);
    const canvas = el("canvas", { width: String(Math.ceil(w * scale)), height: String(Math.ceil(h * scale)) });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  }
}
