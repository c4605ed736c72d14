// Charts of what is a number or a time: of the answer's own columns, and of its evidence.

import { Chart } from "./vendor.js";
import { el, fill } from "./dom.js";

const MOST = 60;

/** A moment as a year with a fraction; null for none, and for what has no such form. */
export function year(text) {
  const found = /^([+-]?\d+)-(\d\d)-(\d\d)/.exec(text ?? "") ?? /^([+-]?\d+)()()$/.exec(text ?? "");
  return found ? Number(found[1]) + ((Number(found[2] || 1) - 1) * 30.4 + Number(found[3] || 1) - 1) / 365.25 : null;
}

const isNumber = (cell) => cell && typeof cell.number === "number";
const isTime = (cell) => cell?.type === "time" && (year(cell.start) !== null || year(cell.end) !== null);

function span(from, to) {
  const begin = year(from?.start) ?? year(from?.end), end = year(to?.end) ?? year(to?.start);
  if (begin === null && end === null) return null;
  return [begin ?? end, Math.max(end ?? begin, (begin ?? end) + 0.02)];
}

/** What can be drawn: `{name, unit, labels, values}`; of times, values are `[from, to]` in years. */
export function drawable(answer) {
  const found = new Map();
  const add = (name, unit, times, label, value) => {
    const key = JSON.stringify([name, unit, times]);
    if (!found.has(key)) found.set(key, { name, unit, times, points: [] });
    found.get(key).points.push([label, value]);
  };
  const labelled = answer.columns.findIndex((_, at) => answer.rows.some((row) => row[at] && !isNumber(row[at]) && !isTime(row[at])));
  answer.rows.forEach((row, number) => row.forEach((cell, at) => {
    const label = labelled >= 0 && row[labelled] ? row[labelled].text : `${number + 1}`;
    if (isNumber(cell)) add(answer.columns[at], cell.unit === "1" ? "" : cell.unit ?? "", false, label, cell.number);
    else if (isTime(cell)) add(answer.columns[at], "year", true, label, span(cell, cell));
  }));
  for (const fact of answer.evidence.facts) {
    const name = `evidence: ${fact.predicate}`;
    if (isNumber(fact.object)) add(name, fact.object.unit === "1" ? "" : fact.object.unit, false, fact.subject.text, fact.object.number);
    else if (isTime(fact.object)) add(name, "year", true, fact.subject.text, span(fact.object, fact.object));
    const times = Object.fromEntries(fact.qualifiers.filter((one) => isTime(one.value)).map((one) => [one.key, one.value]));
    const from = times["start time"] ?? times["point in time"], to = times["end time"] ?? times["point in time"];
    if (from || to) add(name, "year", true, `${fact.subject.text}, ${fact.object?.text ?? ""}`, span(from ?? to, to ?? from));
  }
  return [...found.values()].filter((one) => one.points.every(([, value]) => value !== null));
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

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
    const { name, unit, times, points } = choices[at];
    const kept = (times ? [...points].sort((a, b) => a[1][0] - b[1][0]) : points).slice(0, MOST);
    note.hidden = points.length <= MOST;
    note.textContent = `The first ${MOST} of ${points.length} are drawn.`;
    canvas.setAttribute("aria-label", `${name}: ${kept.length} ${times ? "times" : "numbers"}; the tables say the same`);
    frame.style.height = `${Math.max(220, 60 + kept.length * 24)}px`;
    chart?.destroy();
    const axis = { grid: { color: colour("--line") }, ticks: { color: colour("--text") } };
    chart = new Chart(canvas, {
      type: "bar",
      data: { labels: kept.map(([label]) => (label.length > 40 ? label.slice(0, 38) + "…" : label)), datasets: [{ data: kept.map(([, value]) => value), backgroundColor: colour("--accent"), maxBarThickness: 18, minBarLength: 3 }] },
      options: {
        indexAxis: "y", animation: false, maintainAspectRatio: false,
        scales: {
          x: { ...axis, beginAtZero: !times, title: { display: true, text: [name, unit].filter(Boolean).join(", "), color: colour("--text") }, ticks: { ...axis.ticks, ...(times ? { callback: (value) => `${value}` } : {}) } },
          y: { ...axis, ticks: { ...axis.ticks, autoSkip: false } },
        },
        plugins: { legend: { display: false }, tooltip: { callbacks: { label: (item) => (times ? item.raw.map((one) => one.toFixed(1)).join(" – ") : `${item.raw} ${unit}`) } } },
      },
    });
    frame.chart = chart;
  };
  const select = el("select", { id: "chart-of", onchange: (event) => draw(Number(event.target.value)) },
    choices.map((one, at) => el("option", { value: String(at) }, `${one.name}${one.unit ? `, ${one.unit}` : ""} (${one.points.length})`)));
  fill(place, el("p", {}, el("label", { for: "chart-of" }, "Draw "), select), note, frame);
  draw(0);
}
