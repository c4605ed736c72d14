// A program as a tree: what each step takes stands below it. A step can be opened: its result, its texts to change.

import { post, Refused } from "./api.js";
import { escaped } from "./completion.js";
import { count, cut, el, fill, number } from "./dom.js";
import { shown } from "./facts.js";
import { state } from "./state.js";

/** The tree of a program; `change` hears the text of a changed program. */
export async function drawTree(place, answer, change) {
  fill(place, el("p", {}, "Reading the program…"));
  let found;
  try {
    found = await post("tree", { program: answer.program, language: answer.language, graph: state.graph });
  } catch (error) {
    fill(place, el("p", { class: "error" }, error.message));
    return;
  }
  const taken = new Set(found.steps.flatMap((one) => one.inputs));
  const sizes = answer.trace.length === found.steps.length ? answer.trace : [];
  const seen = new Set();
  const draw = (at) => {
    const step = found.steps[at];
    if (seen.has(at)) return el("li", {}, el("span", { class: "again" }, `↪ ${step.label} ${step.function}, as above`));
    seen.add(at);
    return el("li", {}, node(step, sizes[at], found, answer, change), step.inputs.length ? el("ul", {}, step.inputs.map(draw)) : null);
  };
  const roots = found.steps.map((_, at) => at).filter((at) => !taken.has(at)).reverse();
  fill(place, el("p", {}, "The last step is on top; below each stands what it takes. Open a step to see its result, or to change it."),
    el("ul", { class: "tree" }, roots.map(draw)));
}

function node(step, size, found, answer, change) {
  const result = el("div", { class: "result" });
  const inputs = step.texts.map((one) => (one.choices.length
    ? el("select", {}, one.choices.map((choice) => el("option", { value: choice, selected: choice === one.text }, choice)))
    : /[\n\r]/.test(one.text) ? el("textarea", { rows: "2", value: one.text })
      : el("input", { type: "text", value: one.text, size: Math.min(40, Math.max(10, one.text.length)) })));
  // A field has line ends of its own: what nobody changed stays as it is.
  const first = inputs.map((one) => one.value), texts = () => inputs.map((one, at) => (one.value === first[at] ? step.texts[at].text : one.value));
  const details = el("details", { class: "step" },
    el("summary", {}, el("span", { class: "label" }, step.label), " ", el("strong", {}, step.function),
      step.texts.map((one) => [" ", el("span", { class: "chip" }, cut(one.text, 200))]), size ? el("span", { class: "size" }, ` ${number(size.size)}`) : null),
    step.about ? el("p", {}, step.about) : null,
    size ? el("p", { class: "operator" }, size.operator, size.note ? ` · ${size.note}` : "") : null,
    step.texts.length ? el("form", { onsubmit: (event) => {
      event.preventDefault();
      change(changed(answer, found, step, texts()));
    } },
    step.texts.map((one, at) => el("label", {}, `${one.role || "text"} `, inputs[at])), el("button", { type: "submit" }, "Change and run")) : null,
    el("button", { type: "button", onclick: () => show(result, step, found.language) }, "Show the result of this step"), result);
  return details;
}

async function show(place, step, language) {
  fill(place, el("p", {}, "Asking…"));
  try {
    const answer = await post("query", { program: step.program, language, graph: state.graph, limit: 50, facts: 0, compiled: false });
    fill(place, el("p", {}, count(answer.total, "result"), answer.total > 50 ? ", the first 50:" : ""),
      el("ul", { class: "values" }, answer.rows.map((row) => el("li", {}, row.map(shown)))),
      answer.warnings.map((one) => el("p", { class: "warning" }, one.text)));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    fill(place, el("p", { class: "error" }, error.message));
  }
}

/** The text of a program in which one step has other texts. */
export function changed(answer, found, step, texts) {
  const at = found.steps.indexOf(step), whole = [...answer.program];
  if (found.language === "kopl") {
    const call = `${step.function}(${texts.map((one) => JSON.stringify(one)).join(", ")})`;
    if (step.span) return whole.slice(0, step.span[0]).join("") + call + whole.slice(step.span[1]).join("");
    const said = JSON.parse(answer.program);
    said[at].inputs = texts;
    return JSON.stringify(said);
  }
  for (let i = texts.length - 1; i >= 0; i--) {
    const one = step.texts[i];
    if (texts[i] === one.text) continue;
    const [from, to] = one.span, old = whole.slice(from, to).join(""), mark = /^["']/.exec(old)?.[0] ?? "";
    whole.splice(from, to - from, ...(mark + (mark ? escaped(texts[i], mark) : texts[i]) + mark));
  }
  return whole.join("");
}
