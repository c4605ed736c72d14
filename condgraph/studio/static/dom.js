// Elements, made without any text being read as HTML: names and cells of data are text.

/** An element with attributes, listeners (`onclick: f`) and children: elements, texts, lists of them. */
export function el(tag, attributes = {}, ...children) {
  const found = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) found.addEventListener(name.slice(2), value);
    else if (name in { value: 1, checked: 1, disabled: 1, selected: 1, hidden: 1 }) found[name] = value;
    else found.setAttribute(name, value === true ? "" : value);
  }
  found.append(...children.flat(9).filter((one) => one !== null && one !== undefined && one !== false));
  return found;
}

/** An element of a picture (SVG) with attributes and children. */
export function svg(tag, attributes = {}, ...children) {
  const found = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) found.setAttribute(name, value);
  found.append(...children);
  return found;
}

/** What stands in an element from now on. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(9).filter((one) => one !== null && one !== undefined && one !== false));
  return element;
}

/** A colour of the page as it is now, by its name in the style sheet. */
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Draw again whenever the page has other colours, for as long as an element stands in it. */
export function onColours(element, draw) {
  const system = matchMedia("(prefers-color-scheme: dark)"), heard = (add) => {
    window[`${add}EventListener`]("colours", changed);
    system[`${add}EventListener`]("change", changed);
  };
  const changed = () => (element.isConnected ? draw() : heard("remove"));
  heard("add");
}

/** Say something to those who do not see the page. */
export function announce(text) {
  const place = document.getElementById("said");
  if (place) place.textContent = text;
}

/** Leave a file with the person. */
export function save(name, blob) {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** A text of at most so many characters, whole ones; of a longer one its beginning. */
export function cut(text, most) {
  const found = [...text.slice(0, 2 * most + 2)];
  return found.length > most ? found.slice(0, most - 1).join("") + "…" : text;
}

/** Characters of a text that are shown at first. */
const MOST = 400;

/** A text; of a very long one its beginning, and a button for the rest. */
export function whole(text) {
  const begin = cut(text, MOST);
  if (begin === text) return el("bdi", {}, text);
  const button = el("button", { type: "button", class: "rest", onclick: () => fill(place, text) }, `all ${number([...text].length)} characters`);
  const place = el("bdi", {}, begin, " ", button);
  return place;
}

/** What an entity is called: where its name shows nothing, its id beside that. */
export const called = (cell) => (/[^\p{C}\p{Z}\p{M}\s]/u.test(cell.text) ? cell.text : `(${cell.text ? "blank" : "no"} name: ${cell.id})`);

/** A name in a list of names alone. */
export const visible = (name) => (/[^\p{C}\p{Z}\p{M}\s]/u.test(name) ? cut(name, MOST) : `(${name ? "blank" : "no"} name)`);

/** A name in a line of text alone: where its writing turns, it turns nothing but itself. */
export const isolated = (text) => (/[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufefc]/.test(text) ? `\u2068${text}\u2069` : text);

/** Names one after the other, none of which turns the writing of the others round. */
export const listed = (names, between = ", ") => names.map((one, i) => [i ? between : "", el("bdi", {}, visible(one))]);

/** So many of a thing. */
export const count = (value, one, more = `${one}s`) => `${number(value)} ${value === 1 ? one : more}`;

export const number = (value) => value.toLocaleString("en");

/**
 * Tabs with panels: arrow keys go from one to the next. `tabs` are `[id, label, make]`; a panel is made when it is first seen. `show` is
 * called once the element stands in the page, with the first to be seen: pictures need its size. Another than there is means the first.
 */
export function tabbed(label, tabs) {
  const panel = el("div", { role: "tabpanel", class: "panel", tabindex: "0" });
  const made = new Map();
  const buttons = tabs.map(([id, text]) => el("button", {
    role: "tab", type: "button", id: `tab-${id}`, "data-tab": id, onclick: () => show(id), onkeydown: (event) => move(event, id),
  }, text));
  const bar = el("div", { role: "tablist", "aria-label": label, class: "tabs" }, buttons);
  function show(wanted, focus = false) {
    const id = tabs.some((one) => one[0] === wanted) ? wanted : tabs[0][0];
    for (const one of buttons) {
      const chosen = one.dataset.tab === id;
      one.setAttribute("aria-selected", chosen);
      one.tabIndex = chosen ? 0 : -1;
      if (chosen && focus) one.focus();
    }
    panel.setAttribute("aria-labelledby", `tab-${id}`);
    if (!made.has(id)) made.set(id, el("div"));
    const fresh = !made.get(id).hasChildNodes();
    fill(panel, made.get(id));
    if (fresh) tabs.find((one) => one[0] === id)[2](made.get(id));
  }
  function move(event, id) {
    const at = tabs.findIndex((one) => one[0] === id);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    show(tabs[(to + tabs.length) % tabs.length][0], true);
  }
  return { element: el("section", { class: "tabbed" }, bar, panel), show };
}
