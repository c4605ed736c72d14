// Places on a map: longitudes and latitudes as they are, with lines of the degrees. Nothing is asked of another server, unless
// whoever serves the graph names one that has pictures of the earth (`--tiles`).

import { called, colour, count, cut, el, number, onColours, svg } from "./dom.js";
import { shown } from "./facts.js";

const WIDTH = 720, HEIGHT = 460, LEFT = 44, MOST = 2000, NAMES = 40;
const STEPS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30];
/** Pixels of a tile, how far they go in, and the latitude where the earth of Mercator ends. */
const TILE = 256, DEEPEST = 19, POLE = 85.05;
const { tiles, credit } = document.body.dataset;

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

/** How a latitude lies on the map, in degrees at the equator, and back: with tiles as Mercator drew it, else as it is. */
const [up, down] = tiles ? [(lat) => Math.log(Math.tan(Math.PI / 4 + lat * Math.PI / 360)) * 180 / Math.PI, (y) => 360 / Math.PI * Math.atan(Math.exp(y * Math.PI / 180)) - 90] : [(lat) => lat, (y) => y];
const EARTH = up(tiles ? POLE : 90);

/** A map of places, which one moves and enlarges, and the same as a list. */
export function drawMap(place, places) {
  const listed = places.slice(0, MOST), fit = tiles ? places.filter((one) => Math.abs(one.at[1]) <= POLE) : places, drawn = fit.slice(0, MOST), xs = drawn.map((one) => one.at[0]), ys = drawn.map((one) => up(one.at[1]));
  const [west, east, south, north] = drawn.length ? [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)] : [-180, 180, -EARTH, EARTH];
  const span = Math.max(east - west, north - south, 0.02), all = { x: (west + east) / 2, y: (south + north) / 2 };
  // A degree of longitude is as long as it is in the middle of the map.
  const narrow = tiles ? 1 : Math.max(0.2, Math.cos(all.y * Math.PI / 180)), pad = 0.24 * span;
  all.scale = Math.min(WIDTH / (Math.min(360, east - west + pad) * narrow), HEIGHT / Math.min(2 * EARTH, north - south + pad));
  const missing = el("p", { class: "warning", hidden: true }, "Some tiles of the map could not be read.");
  let view = { ...all }, held = null;
  const drawing = svg("svg", { role: "img", tabindex: 0, "aria-label": `Map of ${count(drawn.length, "place")}; the list below says the same. Arrow keys move it, plus and minus change its size.`, viewBox: `0 0 ${LEFT + WIDTH + 8} ${HEIGHT + 32}`, "font-family": "system-ui, sans-serif" });
  drawing.classList.add("map");
  const draw = () => {
    const { scale } = view, [back, line, muted, text, accent] = ["--panel", "--line", "--muted", "--text", "--accent"].map(colour), names = [], kx = scale * narrow;
    const x = (one) => LEFT + WIDTH / 2 + (one - view.x) * kx, y = (one) => 8 + HEIGHT / 2 + (view.y - one) * scale, half = [WIDTH / 2 / kx, HEIGHT / 2 / scale];
    const [from, to, low, high] = [Math.max(-180, view.x - half[0]), Math.min(180, view.x + half[0]), Math.max(-EARTH, view.y - half[1]), Math.min(EARTH, view.y + half[1])];
    const step = STEPS.find((one) => Math.max(to - from, high - low) / one <= 7) ?? 30, lines = (begin, end) => Array.from({ length: Math.max(0, Math.floor(end / step) - Math.ceil(begin / step) + 1) }, (_, at) => (Math.ceil(begin / step) + at) * step);
    const clip = svg("svg", { x: LEFT, y: 8, width: WIDTH, height: HEIGHT, viewBox: `${LEFT} 8 ${WIDTH} ${HEIGHT}` });
    drawing.replaceChildren(clip, svg("rect", { x: LEFT, y: 8, width: WIDTH, height: HEIGHT, fill: "none", stroke: line }));
    clip.append(svg("rect", { x: LEFT, y: 8, width: WIDTH, height: HEIGHT, fill: back }), ...images(scale, [from, to, low, high], x, y, () => (missing.hidden = false)));
    for (const one of lines(from, to)) {
      if (!tiles) clip.append(svg("path", { d: `M${x(one)},8 V${8 + HEIGHT}`, stroke: line }));
      drawing.append(svg("text", { x: x(one), y: HEIGHT + 24, "text-anchor": "middle", "font-size": 11, fill: muted }, degrees(one, "EW")));
    }
    for (const one of lines(down(low), down(high))) {
      if (!tiles) clip.append(svg("path", { d: `M${LEFT},${y(up(one))} H${LEFT + WIDTH}`, stroke: line }));
      drawing.append(svg("text", { x: LEFT - 5, y: y(up(one)) + 4, "text-anchor": "end", "font-size": 11, fill: muted }, degrees(one, "NS")));
    }
    for (const { at, cell, what } of drawn) {
      const name = cut(cell.type === "entity" ? called(cell) : cell.text, 60), spot = { x: x(at[0]), y: y(up(at[1])) };
      if (spot.x < LEFT || spot.x > LEFT + WIDTH || spot.y < 8 || spot.y > 8 + HEIGHT) continue;
      clip.append(svg("circle", { cx: spot.x, cy: spot.y, r: 4.5, fill: accent, "fill-opacity": 0.75, stroke: back }, svg("title", {}, `${name}, ${what}: ${degrees(at[1], "NS")} ${degrees(at[0], "EW")}`)));
      const room = { x: spot.x, y: spot.y, w: 7 * Math.min(name.length, 24) };
      if (names.length < NAMES && room.x + room.w < LEFT + WIDTH && !names.some((one) => Math.abs(one.y - room.y) < 14 && room.x < one.x + one.w + 12 && one.x < room.x + room.w + 12)) {
        names.push(room);
        clip.append(svg("text", { x: spot.x + 8, y: spot.y + 4, "font-size": 12, "unicode-bidi": "isolate", fill: text, stroke: back, "stroke-width": 3, "paint-order": "stroke" }, cut(name, 24)));
      }
    }
  };
  const look = (more) => {
    view = { ...view, ...more };
    view.scale = Math.min(Math.max(view.scale, all.scale / 8), all.scale * 4096);
    view.x = Math.min(180, Math.max(-180, view.x));
    view.y = Math.min(EARTH, Math.max(-EARTH, view.y));
    draw();
  };
  const zoom = (by) => look({ scale: view.scale * by }), move = (dx, dy, from = view) => look({ x: from.x + dx / (view.scale * narrow), y: from.y - dy / view.scale });
  const keys = { ArrowLeft: () => move(-80, 0), ArrowRight: () => move(80, 0), ArrowUp: () => move(0, -80), ArrowDown: () => move(0, 80), "+": () => zoom(1.5), "-": () => zoom(1 / 1.5) };
  const heard = {
    keydown: (event) => {
      if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      keys[event.key]();
    },
    pointerdown: (event) => {
      held = { at: [event.clientX, event.clientY], view, pixel: (LEFT + WIDTH + 8) / (drawing.clientWidth || 1) };
      drawing.setPointerCapture(event.pointerId);
    },
    pointermove: (event) => held && move((held.at[0] - event.clientX) * held.pixel, (held.at[1] - event.clientY) * held.pixel, held.view),
    pointerup: () => (held = null),
    pointercancel: () => (held = null),
  };
  for (const [name, listener] of Object.entries(heard)) drawing.addEventListener(name, listener);
  draw();
  onColours(drawing, draw);
  const button = (text, onclick, label) => el("button", { type: "button", onclick, "aria-label": label }, text), beyond = places.length - fit.length;
  place.append(...[el("div", { class: "bar" }, button("+", () => zoom(1.5), "Larger"), button("−", () => zoom(1 / 1.5), "Smaller"), button("Fit", () => look(all))), drawing,
    tiles ? [el("p", {}, el("small", {}, `Map: ${credit}`)), missing] : [], beyond ? el("p", { class: "warning" }, `${count(beyond, "place")} beyond ${POLE}° north or south cannot be drawn on these tiles.`) : "",
    fit.length > drawn.length ? el("p", { class: "warning" }, `The first ${number(MOST)} of ${number(fit.length)} places are drawn.`) : "",
    el("details", {}, el("summary", {}, "The places as a list"), el("ul", { class: "values" }, listed.map(({ at, cell, what }) => el("li", {}, shown(cell), ", ", el("bdi", {}, cut(what, 60)), `: ${degrees(at[1], "NS")} ${degrees(at[0], "EW")}`))))].flat());
}

/** The tiles of what is seen, each a picture of another server; none without a source. */
function images(scale, [west, east, south, north], x, y, failed) {
  if (!tiles) return [];
  const deep = Math.min(DEEPEST, Math.max(0, Math.round(Math.log2(scale * 360 / TILE)))), many = 2 ** deep, side = 360 / many, found = [];
  const last = (one) => Math.min(many - 1, Math.floor(one / side)), first = (one) => Math.max(0, Math.floor(one / side));
  for (let across = first(west + 180); across <= last(east + 180); across += 1) for (let below = first(180 - north); below <= last(180 - south); below += 1) {
    const address = tiles.replace("{z}", deep).replace("{x}", across).replace("{y}", below);
    found.push(svg("image", { href: address, x: x(across * side - 180), y: y(180 - below * side), width: side * scale + 0.5, height: side * scale + 0.5 }));
    found.at(-1).addEventListener("error", failed);
  }
  return found;
}
