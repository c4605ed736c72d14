// A chart and a graph of a result, beside YASGUI's table, where the result has numbers, or things that lead to each other.
"use strict";

// In a block, since the scripts of the page share their names.
{
const MOST_BARS = 60, MOST_EDGES = 300;
const XSD = "http://www.w3.org/2001/XMLSchema#";
const NUMBERS = new Set(["integer", "decimal", "double", "float", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger",
  "nonPositiveInteger", "negativeInteger", "unsignedInt", "unsignedLong", "unsignedShort", "unsignedByte"].map((name) => XSD + name));
const TIMES = new Set(["gYear", "gYearMonth", "date", "dateTime", "dateTimeStamp"].map((name) => XSD + name));

/** The parts of a node of a value, whose IRI says the value: `[kind, ...]`; null for others. */
function partsOf(cell) {
  const start = `${settings.base}.v/`;
  return settings.base && cell?.type === "uri" && cell.value.startsWith(start) ? cell.value.slice(start.length).split("/") : null;
}

const isThing = (cell) => Boolean(cell && (cell.type === "bnode" || (cell.type === "uri" && !partsOf(cell))));

/** The number that a cell is; null for others. Infinities have no place in a chart. */
function numberOf(cell) {
  const parts = partsOf(cell);
  if (!cell || (parts ? parts[0] !== "q" : !NUMBERS.has(cell.datatype) || cell.value.trim() === "")) return null;
  const number = Number(parts ? parts[1] : cell.value);
  return Number.isFinite(number) ? number : null;
}

/** Its unit; "" for none. */
function unitOf(cell) {
  const parts = partsOf(cell);
  return !parts || parts[2] === "1" ? "" : nameOf(parts.slice(2).join("/"));
}

const isTime = (cell) => Boolean(cell && (TIMES.has(cell.datatype) || partsOf(cell)?.[0] === "t"));

/** The columns of a result whose cells all pass, empty ones apart; at least one is there. */
const columns = (variables, rows, passes) => variables.filter((name) => rows.some((row) => row[name]) && rows.every((row) => !row[name] || passes(row[name])));

/** What a chart draws: columns of numbers of one unit each, and the column that says what they are of (undefined: the rows). */
function chartOf(results) {
  const variables = results?.getVariables() ?? [], rows = results?.getBindings() ?? [];
  const units = (name) => [...new Set(rows.filter((row) => row[name]).map((row) => unitOf(row[name])))];
  const numbers = columns(variables, rows, (cell) => numberOf(cell) !== null).filter((name) => units(name).length === 1);
  const others = variables.filter((name) => !numbers.includes(name) && rows.some((row) => row[name]));
  const times = columns(others, rows, isTime), texts = columns(others, rows, (cell) => !isThing(cell) && !isTime(cell));
  const titles = new Map(numbers.map((name) => [name, units(name)[0] ? `${name}, ${units(name)[0]}` : name]));
  return { rows, numbers, titles, times: times[0], label: texts[0] ?? times[0] ?? others[0] };
}

/** The edges of a result: `[from, name, to, named]`; of three columns the middle one names the edge where it is an IRI everywhere. */
function edgesOf(results) {
  const variables = results?.getVariables() ?? [], rows = results?.getBindings() ?? [];
  const triples = variables.length === 3 && rows.length && rows.every((row) => isThing(row[variables[0]]) && row[variables[1]]?.type === "uri" && row[variables[2]]);
  const found = new Map();
  const add = (from, name, to, named) => found.set(JSON.stringify([from, name, to]), [from, name, to, named]);
  if (triples) {
    for (const row of rows) add(row[variables[0]], row[variables[1]].value, row[variables[2]], true);
    return [...found.values()];
  }
  const things = columns(variables, rows, isThing);
  for (const row of rows) {
    for (const name of things.slice(1)) if (row[things[0]] && row[name]) add(row[things[0]], name, row[name], false);
  }
  return [...found.values()];
}

const short = (text, most = 40) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
const ending = (iri) => { try { return decodeURIComponent(iri.replace(/[/#]+$/, "").replace(/.*[/#]/, "")) || iri; } catch { return iri; } };
const called = (cell) => (cell?.type === "uri" || cell?.type === "bnode" ? labels.get(cell.value) || valueOf(cell.value) || (cell.type === "bnode" ? "" : ending(cell.value)) : cell?.value ?? "");

/** Ask what IRIs are called, as the table does; those that were asked for are known. */
async function askNames(iris) {
  const wanted = [...new Set(iris)].filter((iri) => SAFE.test(iri) && !labels.has(iri) && valueOf(iri) === null);
  for (let at = 0; at < wanted.length; at += AT_ONCE) {
    const some = wanted.slice(at, at + AT_ONCE);
    for (const iri of some) labels.set(iri, "");
    await lookUp(some);
  }
}

function element(kind, properties, ...children) {
  const made = Object.assign(document.createElement(kind), properties);
  made.append(...children);
  return made;
}

/** What both pictures share: a place, the libraries, and a word where they cannot be had. */
class Picture {
  constructor(yasr) {
    this.yasr = yasr;
    this.priority = 1;
    this.turn = 0;
  }
  destroy() {
    this.turn += 1;
    this.picture?.destroy?.();
    this.picture = null;
  }
  async draw() {
    this.destroy();
    const turn = this.turn, place = element("div", { className: `picture ${this.kind}` });
    this.yasr.resultsEl.replaceChildren(place);
    try {
      const library = await import(new URL(`static/vendor/${this.library}`, document.baseURI));
      if (turn === this.turn) await this.drawn(place, library, () => turn === this.turn);
    } catch (error) {
      place.replaceChildren(element("p", { className: "cut", textContent: `This cannot be drawn: ${error.message}` }));
    }
  }
  note(place, text) {
    place.append(element("p", { className: "note", role: "status", textContent: text }));
  }
  getIcon() {
    return element("span", { textContent: this.icon, ariaHidden: "true" });
  }
}

class ChartPicture extends Picture {
  kind = "chart";
  library = "vendor-drawing.js";
  label = "Chart";
  icon = "▥";
  canHandleResults() {
    return chartOf(this.yasr.results).numbers.length > 0;
  }
  async drawn(place, { Chart }, current) {
    const { rows, numbers, titles, times, label } = chartOf(this.yasr.results);
    const kept = rows.slice(0, MOST_BARS);
    await askNames(kept.map((row) => row[label]).filter(isThing).map((cell) => cell.value));
    if (!current()) return;
    if (rows.length > kept.length) this.note(place, `The first ${MOST_BARS} of ${rows.length.toLocaleString("en")} rows are drawn.`);
    const lines = times !== undefined && label === times && kept.length > 1;
    const shown = lines ? [...kept].sort((a, b) => called(a[times]).localeCompare(called(b[times]), "en", { numeric: true })) : kept;
    const canvas = element("canvas", { role: "img", ariaLabel: `${numbers.join(", ")}: ${kept.length} rows; the table says the same` });
    const frame = element("div", { className: "frame" }, canvas);
    frame.style.height = lines ? "420px" : `${Math.max(220, 60 + shown.length * (10 + 14 * numbers.length))}px`;
    place.append(frame);
    const colours = ["#1f6feb", "#c77700", "#1a7f37", "#8250df", "#cf222e"];
    const values = numbers.map((one, at) => ({
      label: titles.get(one), data: shown.map((row) => numberOf(row[one])), backgroundColor: colours[at % 5], borderColor: colours[at % 5], maxBarThickness: 18, pointRadius: 3,
    }));
    this.picture = new Chart(canvas, {
      type: lines ? "line" : "bar",
      data: { labels: shown.map((row, at) => short(label === undefined ? `${at + 1}` : called(row[label]) || `${at + 1}`)), datasets: values },
      options: {
        indexAxis: lines ? "x" : "y", animation: false, maintainAspectRatio: false,
        scales: lines ? { x: { title: { display: true, text: times } } } : { x: { beginAtZero: true, title: { display: true, text: numbers.length === 1 ? titles.get(numbers[0]) : "" } }, y: { ticks: { autoSkip: false } } },
        plugins: { legend: { display: numbers.length > 1 } },
      },
    });
    place.picture = this.picture;
  }
}

class GraphPicture extends Picture {
  kind = "graph";
  label = "Graph";
  icon = "⚯";
  canHandleResults() {
    return edgesOf(this.yasr.results).length > 0;
  }
  library = "graph.js";
  async drawn(place, { GraphPicture: Drawing }, current) {
    const edges = edgesOf(this.yasr.results), kept = edges.slice(0, MOST_EDGES);
    await askNames(kept.flatMap(([from, by, to, named]) => [from, to].filter((cell) => cell.type === "uri").map((cell) => cell.value).concat(named ? [by] : [])));
    if (!current()) return;
    if (edges.length > kept.length) this.note(place, `The first ${MOST_EDGES} of ${edges.length.toLocaleString("en")} edges are drawn.`);
    const frame = element("div", { className: "frame" }), nodes = new Map();
    place.append(frame);
    // A literal is a node of its own wherever it stands.
    const node = (cell, at) => {
      const id = isThing(cell) ? `${cell.type} ${cell.value}` : `literal ${at}`;
      if (!nodes.has(id)) nodes.set(id, { id, label: called(cell), iri: isThing(cell) && cell.type === "uri" ? cell.value : "", kind: isThing(cell) ? "entity" : "value" });
      return id;
    };
    const drawn = kept.map(([from, by, to, named], at) => ({ from: node(from, at), to: node(to, at), label: named ? labels.get(by) || ending(by) : by }));
    const picture = new Drawing(frame, `${kept.length} edges; the table says the same. Arrow keys go from node to node, Enter opens one.`, {
      // As a link in the table does: what the graph says of it, in a tab of its own.
      onOpen: (id) => {
        const { iri } = nodes.get(id);
        if (iri && SAFE.test(iri)) about(iri);
      },
    });
    picture.show([...nodes.values()], drawn);
    this.picture = place.picture = picture;
  }
}

Yasgui.Yasr.registerPlugin("chart", ChartPicture);
Yasgui.Yasr.registerPlugin("graph", GraphPicture);
Yasgui.Yasr.defaults.pluginOrder = ["table", "chart", "graph", "response"];
}
