// Charts of what is a number or a time: of the answer's own columns, and of its evidence.

import { Chart } from "./vendor-drawing.js";
import { called, colour, count, cut, el, fill, number, onColours } from "./dom.js";

/** Bars, and points of a line, that are drawn at once. */
const MOST = 60, MOST_DOTS = 5000;

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

/** The times that a statement has: of its qualifiers, or of its value; undefined for none, null where they have no year. */
function timesOf(fact) {
  const times = Object.fromEntries(fact.qualifiers.filter((one) => isTime(one.value)).map((one) => [one.key, one.value]));
  const from = times["start time"] ?? times["point in time"] ?? (isTime(fact.object) ? fact.object : null), to = times["end time"] ?? times["point in time"] ?? (isTime(fact.object) ? fact.object : null);
  return from || to ? span(from, to) : undefined;
}

/** Whether a statement has times that can be drawn. */
export const timed = (fact) => Boolean(timesOf(fact));

/**
 * What can be drawn: `{name, unit, times, points, lost, of, labels}`. A point is `[label, value, key]`, and those of one key belong
 * together; of times values are `[from, to]` in years, null where they are open. `lost` counts values beyond what a chart can hold,
 * `of` what there is beside those given, `labels` is what the labels are.
 */
export function drawable(answer) {
  const found = new Map();
  const add = (name, unit, times, label, value, of, key, labels) => {
    const id = JSON.stringify([name, unit, times]);
    if (!found.has(id)) found.set(id, { name, unit, times, points: [], lost: 0, of, labels });
    if (value === null) found.get(id).lost += 1;
    else found.get(id).points.push([label, value, key]);
  };
  const unit = (cell) => (cell.unit === "1" ? "" : cell.unit ?? ""), answers = answer.total > answer.rows.length ? answer.total : 0;
  const labelled = answer.columns.findIndex((_, at) => answer.rows.some((row) => row[at] && !isNumber(row[at]) && !isTime(row[at])));
  answer.rows.forEach((row, number) => row.forEach((cell, at) => {
    const named = labelled >= 0 && labelled !== at, label = named && row[labelled] ? said(row[labelled]) : `${number + 1}`, labels = named ? answer.columns[labelled] : "row";
    if (isNumber(cell)) add(answer.columns[at], unit(cell), false, label, cell.number, answers, number, labels);
    else if (isTime(cell)) add(answer.columns[at], "year", true, label, span(cell, cell), answers, number, labels);
  }));
  const { facts, total } = answer.evidence, others = total > facts.length ? total : 0;
  for (const fact of facts) {
    const name = `evidence: ${fact.predicate}`, subject = said(fact.subject), key = fact.subject.id;
    if (isNumber(fact.object)) add(name, unit(fact.object), false, subject, fact.object.number, others, key, "subject");
    else if (isTime(fact.object)) add(name, "year", true, subject, span(fact.object, fact.object), others, key, "subject");
    const times = isTime(fact.object) ? undefined : timesOf(fact);
    if (times !== undefined) add(name, "year", true, `${subject}, ${fact.object ? said(fact.object) : ""}`, times, others, key, "statement");
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

/** Numbers counted in equal parts: `[labels, counts]`. */
function parts(values) {
  const first = Math.min(...values), last = Math.max(...values), most = Math.min(20, Math.max(5, Math.ceil(Math.sqrt(values.length)))), rough = (last - first) / most || 1;
  const power = 10 ** Math.floor(Math.log10(rough)), size = power * [1, 2, 5, 10].find((one) => one * power >= rough), begin = Math.floor(first / size);
  const counts = Array.from({ length: Math.floor(last / size) - begin + 1 }, () => 0), text = (at) => number(Number(((begin + at) * size).toPrecision(12)));
  for (const value of values) counts[Math.floor(value / size) - begin] += 1;
  return [counts.map((_, at) => `${text(at)} to ${text(at + 1)}`), counts];
}

const titled = ({ name, unit }) => [name, unit].filter(Boolean).join(", ");
const one = (value) => (Array.isArray(value) ? value[0] ?? value[1] : value);

/** Values of two that belong together, as points. */
function pairs(across, up) {
  const known = new Map(across.points.map(([, value, key]) => [key, one(value)]));
  return up.points.filter(([, , key]) => known.has(key)).map(([label, value, key]) => ({ x: known.get(key), y: one(value), label }));
}

/** What Chart.js draws of a choice in a form: bars, histogram, line or scatter; a line and dots are drawn over `across`. */
function config(form, choice, across, narrow) {
  const { name, unit, times, points, lost, of } = choice, text = colour("--text"), title = (words) => ({ display: true, text: cut(words, narrow ? 40 : 100), color: text });
  const axis = (words, more = {}) => ({ grid: { color: colour("--line") }, title: title(words), ...more, ticks: { color: text, ...more.ticks } });
  const notes = [of ? `The chart knows what is listed, not all ${number(of)}.` : "", lost ? `${count(lost, "value")} cannot be drawn: too large for a chart, or without a year.` : ""];
  const years = (on, short) => (on ? { callback: (value) => moment(value, short) } : {}), most = form === "bars" ? MOST : MOST_DOTS;
  const options = { animation: false, maintainAspectRatio: false, plugins: { legend: { display: false } } };
  if (points.length > most) notes.push(`The first ${number(most)} of ${number(points.length)} are drawn.`);
  if (form === "histogram") {
    const [labels, counts] = parts(points.slice(0, most).map(([, value]) => one(value)));
    return { height: 360, notes, told: `${counts.length} parts`, type: "bar", data: { labels, datasets: [{ data: counts, backgroundColor: colour("--accent"), categoryPercentage: 1, barPercentage: 0.95 }] },
      options: { ...options, scales: { x: axis(titled(choice)), y: axis("how many", { beginAtZero: true, ticks: { precision: 0 } }) } } };
  }
  if (across) {
    const data = pairs(across, choice).slice(0, most);
    if (form === "line") data.sort((a, b) => a.x - b.x);
    options.plugins.tooltip = { callbacks: { label: ({ raw }) => `${cut(raw.label, 60)}: ${raw.x}, ${raw.y}` } };
    return { height: 400, notes, told: `${data.length} points`, type: form === "line" ? "line" : "scatter", data: { datasets: [{ data, backgroundColor: colour("--accent"), borderColor: colour("--accent"), borderWidth: 2, pointRadius: form === "line" ? 2 : 4 }] },
      options: { ...options, scales: { x: axis(titled(across), { type: "linear", ticks: years(across.times) }), y: axis(titled(choice), { type: "linear", ticks: years(times) }) } } };
  }
  const begin = ([, [from, to]]) => from ?? to, kept = (times ? [...points].sort((a, b) => begin(a) - begin(b)) : points).slice(0, MOST);
  const values = times ? bars(kept) : kept.map(([, value]) => value), open = times ? kept.filter(([, value]) => value.includes(null)).length : 0;
  const edges = times ? { min: Math.min(...values.flat()), max: Math.max(...values.flat()) } : {}, short = edges.max - edges.min < 8;
  if (open) notes.push(`${count(open, "bar")} ${open === 1 ? "goes" : "go"} on to the edge: no begin or no end is known.`);
  options.plugins.tooltip = { callbacks: { label: (item) => (times ? kept[item.dataIndex][1].map((end) => (end === null ? "open" : moment(end, true))).join(" – ") : `${item.raw} ${unit}`) } };
  return { height: Math.max(220, 80 + kept.length * 24), notes, told: `${kept.length} ${times ? "times" : "numbers"}`, type: "bar",
    data: { labels: kept.map(([label]) => cut(label, narrow ? 14 : 40)), datasets: [{ data: values, backgroundColor: colour("--accent"), maxBarThickness: 18, minBarLength: 3 }] },
    options: { ...options, indexAxis: "y", scales: { x: axis(titled({ name, unit }), { ...(open ? edges : {}), beginAtZero: !times, ticks: years(times, short) }), y: axis(choice.labels, { ticks: { autoSkip: false } }) } } };
}

/** A chart in `place`: `draw` takes a form, a choice, and what it is drawn over. */
function frame(place) {
  const canvas = el("canvas", { role: "img" }), box = el("div", { class: "chart" }, canvas), note = el("p", { class: "warning", hidden: true });
  place.append(note, box);
  return (form, choice, across) => {
    const { height, notes, told, ...chart } = config(form, choice, across, box.clientWidth < 500);
    note.textContent = notes.filter(Boolean).join(" ");
    note.hidden = !note.textContent;
    canvas.setAttribute("aria-label", `${choice.name}: ${told}; the tables say the same`);
    box.style.height = `${height}px`;
    box.chart?.destroy();
    box.chart = new Chart(canvas, chart);
    return box;
  };
}

/** The times of statements as bars; `id` is the entity that they are of, which is not repeated. */
export function drawTimes(place, facts, id) {
  const other = (fact) => (fact.subject.id === id ? `${fact.predicate}: ${said(fact.object)}` : `${said(fact.subject)}: ${fact.predicate}`);
  const points = facts.filter(timed).map((fact, key) => [fact.subject.id === id && isTime(fact.object) ? fact.predicate : other(fact), timesOf(fact), key]);
  const choice = { name: "time", unit: "year", times: true, points, lost: 0, of: 0, labels: "statement" }, draw = frame(place);
  const box = draw("bars", choice);
  onColours(box, () => draw("bars", choice));
}

/** A chart of one of the choices: which, in which form, and over what. */
export function drawChart(place, answer) {
  const choices = drawable(answer);
  if (!choices.length) {
    fill(place, el("p", {}, "Neither the answer nor its evidence has numbers or times to draw."));
    return;
  }
  const options = (list) => list.map((choice) => el("option", { value: String(choices.indexOf(choice)) }, `${cut(titled(choice), 80)} (${number(choice.points.length)})`));
  const which = el("select", { id: "chart-of", onchange: () => changed() }, options(choices));
  const form = el("select", { id: "chart-form", onchange: () => changed() }), over = el("select", { id: "chart-over", onchange: () => changed() }), overLabel = el("label", { for: "chart-over" }, "over ");
  fill(place, el("p", { class: "bar" }, el("label", { for: "chart-of" }, "Draw "), which, el("label", { for: "chart-form" }, "as "), form, overLabel, over));
  const draw = frame(place);
  const changed = () => {
    const choice = choices[Number(which.value)], others = choices.filter((other) => other !== choice && pairs(other, choice).length > 1);
    const forms = ["bars", ...(choice.points.length >= 5 ? ["histogram"] : []), ...(others.length ? ["scatter", "line"] : [])], wanted = forms.includes(form.value) ? form.value : "bars";
    const last = others.includes(choices[Number(over.value)]) ? over.value : String(choices.indexOf(others[0]));
    fill(form, forms.map((name) => el("option", { value: name, selected: name === wanted }, name)));
    fill(over, options(others));
    over.value = last;
    over.hidden = overLabel.hidden = !["scatter", "line"].includes(wanted);
    return draw(wanted, choice, over.hidden ? null : choices[Number(last)]);
  };
  onColours(changed(), changed);
}
