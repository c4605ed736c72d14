// Places on a map: longitudes and latitudes as they are, with lines of the degrees; nothing is asked of another server.

import { called, colour, count, cut, el, number, onColours, svg } from "./dom.js";
import { shown } from "./facts.js";

const WIDTH = 720, MOST = 2000, NAMES = 40;
const STEPS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30];

/** `POINT(longitude latitude)` as its numbers; null for others. */
const read = (cell) => {
  const found = cell?.type === "point" && /^POINT\((-?[\d.]+) (-?[\d.]+)\)$/.exec(cell.text);
  return found ? found.slice(1).map(Number) : null;
};

/** The places that statements name: `{at, cell, what}`. */
export const placesOf = (facts) => facts.flatMap((fact) => [[fact.predicate, fact.object], ...fact.qualifiers.map((one) => [one.key, one.value])]
  .map(([what, cell]) => ({ at: read(cell), cell: fact.subject, what })).filter((one) => one.at));

/** The places of an answer: of its rows, or else of its evidence. */
export function placesIn(answer) {
  const rows = answer.rows.flatMap((row) => row.map((cell, at) => ({ at: read(cell), cell: row.find((other) => other && other !== cell) ?? cell, what: answer.columns[at] })).filter((one) => one.at));
  return rows.length ? rows : placesOf(answer.evidence.facts);
}

const degrees = (value, [plus, minus]) => `${Number(Math.abs(value).toFixed(3))}°${value > 0 ? plus : value < 0 ? minus : ""}`;

/** A map of places, and the same as a list. */
export function drawMap(place, places) {
  const drawn = places.slice(0, MOST), xs = drawn.map((one) => one.at[0]), ys = drawn.map((one) => one.at[1]);
  const span = Math.max(Math.max(...xs) - Math.min(...xs), Math.max(...ys) - Math.min(...ys), 0.02), pad = span * 0.12;
  const [west, east] = [Math.max(-180, Math.min(...xs) - pad), Math.min(180, Math.max(...xs) + pad)], [south, north] = [Math.max(-90, Math.min(...ys) - pad), Math.min(90, Math.max(...ys) + pad)];
  // A degree of longitude is as long as it is in the middle of the map.
  const narrow = Math.max(0.2, Math.cos((south + north) / 2 * Math.PI / 180)), scale = Math.min(WIDTH / ((east - west) * narrow), 460 / (north - south));
  const width = (east - west) * narrow * scale, height = (north - south) * scale, left = 44, x = (one) => left + (one - west) * narrow * scale, y = (one) => 8 + (north - one) * scale;
  const step = STEPS.find((one) => Math.max(east - west, north - south) / one <= 7) ?? 30, lines = (from, to) => Array.from({ length: Math.floor(to / step) - Math.ceil(from / step) + 1 }, (_, at) => (Math.ceil(from / step) + at) * step);
  const drawing = svg("svg", { role: "img", "aria-label": `Map of ${count(drawn.length, "place")}; the list below says the same`, viewBox: `0 0 ${left + width + 8} ${height + 32}`, "font-family": "system-ui, sans-serif" });
  drawing.classList.add("map");
  const draw = () => {
    const [back, line, muted, text, accent] = ["--panel", "--line", "--muted", "--text", "--accent"].map(colour), names = [];
    drawing.replaceChildren(svg("rect", { x: left, y: 8, width, height, fill: back, stroke: line }),
      ...lines(west, east).flatMap((one) => [svg("path", { d: `M${x(one)},8 V${8 + height}`, stroke: line }), svg("text", { x: x(one), y: height + 24, "text-anchor": "middle", "font-size": 11, fill: muted }, degrees(one, "EW"))]),
      ...lines(south, north).flatMap((one) => [svg("path", { d: `M${left},${y(one)} H${left + width}`, stroke: line }), svg("text", { x: left - 5, y: y(one) + 4, "text-anchor": "end", "font-size": 11, fill: muted }, degrees(one, "NS"))]));
    for (const { at, cell, what } of drawn) {
      const name = cut(cell.type === "entity" ? called(cell) : cell.text, 60), spot = { x: x(at[0]), y: y(at[1]) };
      drawing.append(svg("circle", { cx: spot.x, cy: spot.y, r: 4.5, fill: accent, "fill-opacity": 0.75, stroke: back }, svg("title", {}, `${name}, ${what}: ${degrees(at[1], "NS")} ${degrees(at[0], "EW")}`)));
      const room = { x: spot.x, y: spot.y, w: 7 * Math.min(name.length, 24) };
      if (names.length < NAMES && room.x + room.w < left + width && !names.some((one) => Math.abs(one.y - room.y) < 14 && room.x < one.x + one.w + 12 && one.x < room.x + room.w + 12)) {
        names.push(room);
        drawing.append(svg("text", { x: spot.x + 8, y: spot.y + 4, "font-size": 12, "unicode-bidi": "isolate", fill: text }, cut(name, 24)));
      }
    }
  };
  draw();
  onColours(drawing, draw);
  place.append(drawing, places.length > drawn.length ? el("p", { class: "warning" }, `The first ${number(MOST)} of ${number(places.length)} places are drawn.`) : "",
    el("details", {}, el("summary", {}, "The places as a list"), el("ul", { class: "values" }, drawn.map(({ at, cell, what }) => el("li", {}, shown(cell), ", ", el("bdi", {}, cut(what, 60)), `: ${degrees(at[1], "NS")} ${degrees(at[0], "EW")}`)))));
}
