// Rows of a concept or a table: sorted, filtered by facets, a page at a time.

import { post } from "./api.js";
import { announce, count, cut, el, fill, number, visible, whole } from "./dom.js";
import { shown } from "./facts.js";
import { link, state } from "./state.js";

const PAGE = 50;
/** Pixels below which filters are closed at first. */
const WIDE = 720;

/** The values that an address asks for, by column; those of a wrong address are none. */
function filters(fields) {
  try {
    const found = JSON.parse(fields.get("w") ?? "{}");
    return found && typeof found === "object" ? Object.fromEntries(Object.entries(found).filter(([, text]) => typeof text === "string")) : {};
  } catch {
    return {};
  }
}

/** A page of rows; its address has all that it shows. */
export async function browsePage(place, fields) {
  fill(place, el("h1", {}, "Reading…"));
  const where = filters(fields), sort = fields.get("s") ?? "", descending = fields.get("d") === "1", offset = Math.max(0, Number.parseInt(fields.get("o") ?? "0", 10) || 0);
  const concept = fields.get("c") || undefined, table = fields.get("t") || undefined, name = concept ?? table ?? "";
  const to = (changed) => {
    const wanted = { w: where, s: sort, d: descending ? "1" : "", o: 0, ...changed };
    return link("browse", { c: concept, t: table, ...wanted, w: Object.keys(wanted.w).length ? JSON.stringify(wanted.w) : "", o: wanted.o ? String(wanted.o) : "" });
  };
  const found = await post("browse", { concept, table, where, sort: sort || undefined, descending, offset, limit: PAGE, graph: state.graph });
  const first = offset + 1, last = offset + found.rows.length;
  const heading = (column) => {
    const own = column === sort;
    return el("th", { scope: "col", "aria-sort": own ? (descending ? "descending" : "ascending") : null },
      el("a", { href: to({ s: column, d: own && !descending ? "1" : "" }) }, el("bdi", {}, visible(column)), own ? (descending ? " ↓" : " ↑") : ""));
  };
  const without = (column) => Object.fromEntries(Object.entries(where).filter(([other]) => other !== column));
  const facet = ({ column, values, more }) => el("section", { class: "facet", "data-column": cut(column, 200) }, el("h2", {}, el("bdi", {}, visible(column))),
    el("ul", {}, values.map(({ value, count: rows }) => {
      const text = value?.text ?? "", chosen = where[column] === text;
      return el("li", {}, chosen ? el("strong", {}, el("bdi", {}, value ? visible(text) : "(none)")) : el("a", { href: to({ w: { ...where, [column]: text } }) }, el("bdi", {}, value ? visible(text) : "(none)")), " ", el("small", {}, number(rows)));
    })), more ? el("small", {}, "the most frequent") : null);
  fill(place, el("h1", {}, whole(name)),
    el("p", {}, `${count(found.total, "row")}. `, el("a", { href: link("ask", { l: "kopl", q: found.program, t: found.table }) }, "Open as a query"),
      concept ? [" · ", el("a", { href: link("entity", { name: concept }) }, "The concept")] : null),
    Object.keys(where).length ? el("p", { class: "filters" }, "Only rows with ", Object.entries(where).map(([column, text]) => [" ", el("span", { class: "chip" }, el("bdi", {}, visible(column)), ": ", text ? el("bdi", {}, visible(text)) : "(none)", " ",
      el("a", { href: to({ w: without(column) }), "aria-label": `Without the filter of ${visible(column)}` }, "×"))])) : null,
    found.warnings.map((one) => el("p", { class: "warning" }, whole(one.text))),
    el("div", { class: "browse" },
      found.facets.length ? el("details", { class: "facets", open: innerWidth >= WIDE }, el("summary", {}, "Filters"), found.facets.map(facet)) : null,
      el("div", {},
        found.rows.length ? el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Rows" }, el("table", { class: "rows" },
          el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Row"), found.columns.map(heading))),
          el("tbody", {}, found.rows.map((row) => el("tr", {}, row.map((cell) => el("td", { class: typeof cell?.number === "number" ? "number" : "" }, shown(cell)))))))) : el("p", {}, "There are no such rows."),
        el("nav", { class: "pages", "aria-label": "Pages of rows" }, found.rows.length ? `${number(first)} to ${number(last)} of ${number(found.total)} ` : "",
          offset ? el("a", { href: to({ s: sort, o: Math.max(0, offset - PAGE) }), rel: "prev" }, "Previous") : null, " ",
          last < found.total && found.rows.length ? el("a", { href: to({ s: sort, o: offset + PAGE }), rel: "next" }, "Next") : null),
        found.more_columns.length ? el("p", {}, el("small", {}, `${count(found.more_columns.length, "more column")}: `, found.more_columns.slice(0, 40).map((column, i) => [i ? ", " : "", el("bdi", {}, visible(column))]), found.more_columns.length > 40 ? ", …" : "")) : null)));
  announce(count(found.total, "row"));
}
