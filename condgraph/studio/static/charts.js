// Charts of what is a number or a time: of the answer's own columns, and of its evidence.

import { Chart } from "./vendor.js";
import { called, colour, count, cut, el, fill, number, onColours } from "./dom.js";

const MOST = 60;

/** A moment as a year with a fraction; null for none, and for what has no such form. */
export function year(text) {
  const found = /^([+-]?\d+)-(\d\d)-(\d\d)/.exec(text ?? "") ?? /^([+-]?\d+)()()$/.exec(text ?? "");
  return found ? Number(found[1]) + ((Number(found[2] || 1) - 1) * 30.4 + Number(found[3] || 1) - 1) / 365.25 : null;
}

const isNumber = (cell) => cell?.type === "quantity" || cell?.type === "count" || cell?.type === "number";
const isTime = (cell) => cell?.type === "time";

/** From when to when; an end that is not known is null, and so is a time that has no year. */
function span(from, to) {
  const begin = year(from?.start), end = year(to?.end);
  return begin === null && end === null ? null : [begin, end === null || begin === null ? end : Math.max(end, begin + 0.02)];
}

/**
 * What can be drawn: `{name, unit, times, points, lost, of}`. A point is `[label, value]`; of times values are
 * `[from, to]` in years, null where they are open. `lost` counts values beyond what a chart can hold, `of` what there is beside those given.
 */
export function drawable(answer) {
  const found = new Map();
  const add = (name, unit, times, label, value, of) => {
    const key = JSON.stringify([name, unit, times]);
    if (!found.has(key)) found.set(key, { name, unit, times, points: [], lost: 0, of });
    if (value === null) found.get(key).lost += 1;
    else found.get(key).points.push([label, value]);
  };
  const unit = (cell) => (cell.unit === "1" ? "" : cell.unit ?? ""), answers = answer.total > answer.rows.length ? answer.total : 0;
  const labelled = answer.columns.findIndex((_, at) => answer.rows.some((row) => row[at] && !isNumber(row[at]) && !isTime(row[at])));
  answer.rows.forEach((row, number) => row.forEach((cell, at) => {
    const label = labelled >= 0 && labelled !== at && row[labelled] ? said(row[labelled]) : `${number + 1}`;
    if (isNumber(cell)) add(answer.columns[at], unit(cell), false, label, cell.number, answers);
    else if (isTime(cell)) add(answer.columns[at], "year", true, label, span(cell, cell), answers);
  }));
  const { facts, total } = answer.evidence, others = total > facts.length ? total : 0;
  for (const fact of facts) {
    const name = `evidence: ${fact.predicate}`, subject = said(fact.subject);
    if (isNumber(fact.object)) add(name, unit(fact.object), false, subject, fact.object.number, others);
    else if (isTime(fact.object)) add(name, "year", true, subject, span(fact.object, fact.object), others);
    const times = Object.fromEntries(fact.qualifiers.filter((one) => isTime(one.value)).map((one) => [one.key, one.value]));
    const from = times["start time"] ?? times["point in time"], to = times["end time"] ?? times["point in time"];
    if (from || to) add(name, "year", true, `${subject}, ${fact.object ? said(fact.object) : ""}`, span(from, to), others);
  }
  return [...found.values()].filter((one) => one.points.length > 1); // one bar says nothing
}

const said = (cell) => (cell.type === "entity" ? called(cell) : cell.text);

/** A year with a fraction as a tick: the month as well, where the axis is short. */
function moment(value, short) {
  const whole = Math.floor(value), month = Math.floor((value - whole) * 12 + 0.001) + 1;
  return short ? `${whole}-${String(month).padStart(2, "0")}` : `${Math.round(value * 10) / 10}`;
}

/** Bars of times from edge to edge: what is open goes on to the edge. */
function bars(points) {
  const all = points.flatMap(([, value]) => value).filter((one) => one !== null), first = Math.min(...all), last = Math.max(...all);
  const beyond = Math.max((last - first) / 20, 1);
  return points.map(([, [from, to]]) => [from ?? Math.floor(first - beyond), to ?? Math.ceil(last + beyond)]);
}

/** A chart of one of them, and which. */
export function drawChart(place, answer) {
  const choices = drawable(answer);
  if (!choices.length) {
    fill(place, el("p", {}, "Neither the answer nor its evidence has numbers or times to draw."));
    return;
  }
  const canvas = el("canvas", { role: "img" }), frame = el("div", { class: "chart" }, canvas), note = el("p", { class: "warning", hidden: true });
  let chart = null;
  const draw = (at) => {
    const { name, unit, times, points, lost, of } = choices[at];
    const begin = ([, [from, to]]) => from ?? to, kept = (times ? [...points].sort((a, b) => begin(a) - begin(b)) : points).slice(0, MOST);
    const values = times ? bars(kept) : kept.map(([, value]) => value), open = times ? kept.filter(([, value]) => value.includes(null)).length : 0;
    const edges = times ? { min: Math.min(...values.flat()), max: Math.max(...values.flat()) } : {}, short = edges.max - edges.min < 8;
    const notes = [
      points.length > MOST ? `The first ${MOST} of ${number(points.length)} are drawn.` : "",
      of ? `The chart knows what is listed, not all ${number(of)}.` : "",
      lost ? `${count(lost, "value")} cannot be drawn: too large for a chart, or without a year.` : "",
      open ? `${count(open, "bar")} ${open === 1 ? "goes" : "go"} on to the edge: no begin or no end is known.` : "",
    ].filter(Boolean);
    note.hidden = !notes.length;
    note.textContent = notes.join(" ");
    canvas.setAttribute("aria-label", `${name}: ${kept.length} ${times ? "times" : "numbers"}; the tables say the same`);
    const narrow = frame.clientWidth < 500;
    frame.style.height = `${Math.max(220, 60 + kept.length * 24)}px`;
    chart?.destroy();
    const axis = { grid: { color: colour("--line") }, ticks: { color: colour("--text") } };
    chart = new Chart(canvas, {
      type: "bar",
      data: { labels: kept.map(([label]) => cut(label, narrow ? 14 : 40)), datasets: [{ data: values, backgroundColor: colour("--accent"), maxBarThickness: 18, minBarLength: 3 }] },
      options: {
        indexAxis: "y", animation: false, maintainAspectRatio: false,
        scales: {
          x: { ...axis, ...(open ? edges : {}), beginAtZero: !times, title: { display: true, text: cut([name, unit].filter(Boolean).join(", "), narrow ? 40 : 100), color: colour("--text") }, ticks: { ...axis.ticks, ...(times ? { callback: (value) => moment(value, short) } : {}) } },
          y: { ...axis, ticks: { ...axis.ticks, autoSkip: false } },
        },
        plugins: { legend: { display: false }, tooltip: { callbacks: { label: (item) => (times ? kept[item.dataIndex][1].map((one) => (one === null ? "open" : moment(one, true))).join(" – ") : `${item.raw} ${unit}`) } } },
      },
    });
    frame.chart = chart;
  };
  const select = el("select", { id: "chart-of", onchange: (event) => draw(Number(event.target.value)) },
    choices.map((one, at) => el("option", { value: String(at) }, `${cut([one.name, one.unit].filter(Boolean).join(", "), 80)} (${number(one.points.length)})`)));
  fill(place, el("p", {}, el("label", { for: "chart-of" }, "Draw "), select), note, frame);
  draw(0);
  onColours(frame, () => draw(Number(select.value)));
}
