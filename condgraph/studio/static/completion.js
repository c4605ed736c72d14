// Completion: the words of each language, and the graph's own names, each written as it has to stand there.

import { get } from "./api.js";
import { state } from "./state.js";

/** Languages that are not told apart by the server, and how they begin. */
export const FOREIGN = [
  ["sparql", /^\s*(?:#.*\s+)*(?:prefix|base|select|ask|construct|describe)\b/i],
  ["cypher", /^\s*(?:\/\/.*\s+)*(?:match|call|with|unwind|optional\s+match)\b/i],
];

/** The words of a language. */
export const wordsOf = (language) => state.about?.functions.keywords[language] ?? [];

/** Names of the graph that are like a text. */
async function names(text, kinds, signal, ids = false) {
  const found = await get("names", { text: [...text.slice(0, 400)].slice(0, 200).join(""), kinds, ids: ids || "", graph: state.graph, limit: 30 }, signal).catch(() => ({ names: [] }));
  return found.names;
}

const TYPES = { entity: "constant", concept: "class", predicate: "property", qualifier: "property", source: "namespace" };
const offered = (found, write) => found.map((one) => ({ label: one.name, apply: write(one), detail: one.about, type: TYPES[one.kind] }));
const begins = (word, text) => word.toLowerCase().startsWith(text.toLowerCase());
const words = (language, text) => wordsOf(language).filter((word) => begins(word, text) && word.length > text.length).map((label) => ({ label, type: label.endsWith("(") ? "function" : "keyword" }));
const answer = (from, options) => (options.length ? { from, filter: false, options } : null);

/** A letter that stands for what is whole. */
const WHOLE = "ǁ";
/** The text with its whole pieces (quoted names, IRIs) as so many signs, and comments as spaces, so that what is open stands out. */
const blanked = (text, pieces, sign = WHOLE) => text.replace(pieces, (piece) => (piece.startsWith("#") ? " " : sign).repeat(piece.length));
/** The quote that is open at the end of a text whose closed ones are blanked: its mark, and what is written behind it. */
const opened = (rest, marks) => new RegExp(`([${marks}])((?:(?!\\1)[^\\\\]|\\\\.)*)$`, "s").exec(rest);
const LINES = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }, READ = { n: "\n", r: "\r", t: "\t" };
const unescaped = (text) => text.replace(/\\(.)/g, (_, one) => READ[one] ?? one);
/** A name as it stands between two marks: every language reads backslashes so. */
export const escaped = (name, mark) => name.replaceAll("\\", "\\\\").replaceAll(mark, "\\" + mark).replace(/[\n\r\t]/g, (one) => LINES[one]);
/** A name between backticks: Cypher reads \u0060 for a backtick there, too. */
const ticked = (name) => name.replaceAll("\\", "\\u005C").replaceAll("`", "``");
/** A name as KoPL and arrows have it: as it is, or in quotes. */
export const plainly = (name) => (/[,()"\\$\p{C}\u2028\u2029]|^\s|\s$/u.test(name) ? JSON.stringify(name) : name);

function variables(asked, written) {
  const [mark, text] = [written[0], written.slice(1)];
  const all = asked.doc.match(/[?$][\p{L}_][\p{L}\p{N}_]*/gu) ?? [];
  // The one that is being written is no suggestion unless it stands elsewhere, too.
  const known = [...new Set(all.map((one) => one.slice(1)))].filter((one) => begins(one, text) && (one !== text || all.filter((other) => other.slice(1) === one).length > 1));
  return answer(asked.pos - written.length, known.sort().map((one) => ({ label: mark + one, type: "variable" })));
}

// -- logical queries ----------------------------------------------------------------------------------------------------

const PLAIN = /^[\p{L}_][\p{L}\p{N}_]*$/u;
const JOINING = /^(?:and|or|not|exists)$/i;

async function logic(asked) {
  const rest = blanked(asked.before, /"(?:[^"\\]|\\.)*"|<[^<>\n]+>/gs);
  const variable = /[?$][\p{L}\p{N}_]*$/u.exec(rest), string = opened(rest, '"');
  if (variable && !string) return variables(asked, variable[0]);
  const open = string ?? /(<)([^<]*)$/.exec(rest) ?? /()([\p{L}_][\p{L}\p{N}_]*)?$/u.exec(rest);
  const [, mark, piece = ""] = open, from = rest.length - piece.length - mark.length, text = asked.before.slice(rest.length - piece.length);
  if (!text && !(asked.explicit && (mark || /(?:^|[\s(,:.&|!∧∨¬])$/.test(rest)))) return null;
  const head = rest.slice(0, from).trimEnd(), called = /([\p{L}\p{N}_]+)\s*\($/u.exec(head);
  // Terms stand in the brackets of an atom; in other brackets, and in front of all, stand atoms.
  const term = called ? !JOINING.test(called[1]) : /,$/.test(head) && !/exists[^.]*$/i.test(head);
  const close = asked.after.startsWith('"') ? "" : '"';
  if (mark === "<") {
    // A label of a database has an id, and is no entity.
    const found = await names(text, ["entity", "concept"], asked.signal, true);
    return answer(asked.pos - text.length, offered(found.filter((one) => !/[<>\n]/.test(one.id) && one.id !== `:${one.name}`), (one) => one.id + (asked.after.startsWith(">") ? "" : ">")));
  }
  const write = (name) => (mark ? `"${escaped(name, '"')}${close}` : term || !PLAIN.test(name) || JOINING.test(name) ? `"${escaped(name, '"')}"` : name);
  const found = await names(unescaped(text), term ? ["entity", "concept"] : ["relation", "concept"], asked.signal);
  const usable = offered(found, (one) => write(one.name) + (term || mark ? "" : "("));
  return answer(from, [...(mark || term ? [] : words("logic", text)), ...usable]);
}

// -- patterns -----------------------------------------------------------------------------------------------------------

const UNKNOWN = /^(unknown[ _]+)(.*)$/is;

async function pattern(asked) {
  const rest = blanked(asked.before, /"(?:[^"\\]|\\.)*"/gs), brackets = [], open = opened(rest, '"')?.index ?? -1;
  for (let at = 0; at < (open < 0 ? rest.length : open); at++) {
    if ("([".includes(rest[at])) brackets.push(at);
    else if (")]".includes(rest[at])) brackets.pop();
  }
  // A bracket behind words is part of a name.
  const at = brackets.find((from, i) => /^[^,"()[\]ǁ]*[^,"()[\]ǁ\s][^,"()[\]ǁ]*$/.test(rest.slice(from + 1, brackets[i + 1] ?? from + 1))) ?? brackets.at(-1);
  if (at === undefined) {
    const arrow = /[)\]]\s*([<>-]*)$/.exec(rest);
    if (!arrow || !(arrow[1] || asked.explicit)) return null;
    const shapes = rest[arrow.index] === ")" ? ["-[", "<-["] : ["]->(", "]-("].map((one) => one.slice(1));
    return answer(rest.length - arrow[1].length, shapes.filter((one) => one.startsWith(arrow[1])).map((label) => ({ label, type: "keyword" })));
  }
  const inside = rest.slice(at + 1), quote = open - at - 1;
  // ("head", "relation", "tail"), or (head) -[relation]-> (tail).
  const relation = rest[at] === "[" && /-\s*$/.test(rest.slice(0, at)) ? true : inside.split(",").length === 2 && inside.trimStart().startsWith(WHOLE);
  const begin = quote >= 0 ? at + 2 + quote : rest.length - inside.trimStart().length;
  const written = asked.before.slice(begin), mark = quote >= 0 ? '"' : "", hint = relation ? null : UNKNOWN.exec(written);
  if (quote < 0 && written.startsWith('"')) return null;
  const text = unescaped(hint ? hint[2] : written);
  if ((!text.trim() && !asked.explicit && !hint) || text.startsWith("?") || (hint && /\s\d+$/.test(text))) return null;
  const close = mark && !asked.after.startsWith('"') ? '"' : "";
  const write = (name) => {
    if (mark) return (hint ? hint[1] : "") + escaped(name, '"') + close;
    return hint && balanced(name) ? hint[1] + name : balanced(name) ? name : JSON.stringify((hint ? hint[1] : "") + name);
  };
  const kinds = relation ? ["predicate"] : hint ? ["concept"] : ["entity", "concept"];
  // What would be read as an unknown or a variable cannot be named here.
  const found = (await names(text, kinds, asked.signal)).filter((one) => one.kind !== "qualifier" && !/^\s*(?:unknown\b|\?|$)/i.test(one.name));
  return answer(begin, [...(relation || hint ? [] : words("pattern", text).map((one) => ({ ...one, apply: `${one.label} ` }))), ...offered(found, (one) => write(one.name))]);
}

/** Whether a name may stand between the brackets of an arrow as it is. */
function balanced(name) {
  let depth = 0;
  for (const one of name) {
    if ("([".includes(one)) depth += 1;
    else if (")]".includes(one) && --depth < 0) return false;
  }
  return depth === 0 && !/["\\\p{C}\u2028\u2029]|^\s|\s$/u.test(name);
}

// -- SPARQL -------------------------------------------------------------------------------------------------------------

/** What a relative IRI names, as far as it is written. */
function named(iri) {
  try {
    return decodeURIComponent(iri.replaceAll("_", " "));
  } catch {
    return iri.replaceAll("_", " ");
  }
}

async function sparql(asked) {
  const rest = blanked(asked.before, /<[^<>"{}|^`\\\s]*>|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|#[^\n]*(?=\n)/g);
  const line = rest.slice(rest.lastIndexOf("\n") + 1);
  const variable = /[?$][\p{L}\p{N}_]*$/u.exec(line), comment = line.indexOf("#"), string = opened(line, "\"'");
  const quoted = string && (comment < 0 || string.index < comment) ? string : null;
  if (comment >= 0 && !quoted) return null;
  if (variable && !quoted) return variables(asked, variable[0]);
  if (quoted) {
    const mark = quoted[1], text = asked.before.slice(asked.before.length - quoted[2].length);
    if (!text && !asked.explicit) return null;
    const found = await names(unescaped(text), ["entity", "concept"], asked.signal);
    return answer(asked.pos - text.length, offered(found, (one) => escaped(one.name, mark) + (asked.after.startsWith(mark) ? "" : mark)));
  }
  const iri = /<([^<>"{}|^`\\\s=]*)$/.exec(line);
  if (iri) {
    if (!iri[1] && !asked.explicit) return null;
    const found = await names(named(iri[1]), ["predicate", "concept", "entity"], asked.signal, true);
    const terms = words("sparql", iri[1]).filter((one) => iri[1] && one.label.startsWith("pred:"));
    return answer(asked.pos - iri[1].length, [...terms.map((one) => ({ ...one, apply: one.label + (asked.after.startsWith(">") ? "" : ">") })), ...offered(found, (one) => one.iri + (asked.after.startsWith(">") ? "" : ">"))]);
  }
  const word = /(?:^|[^\p{L}\p{N}_@^])([\p{L}][\p{L}\p{N}_:]*)$/u.exec(line)?.[1] ?? "";
  if (!word && !asked.explicit) return null;
  const found = word.length > 1 && !word.includes(":") ? await names(word, ["predicate", "concept"], asked.signal, true) : [];
  const like = found.filter((one) => begins(one.name, word));
  return answer(asked.pos - word.length, [...(word ? words("sparql", word) : []), ...offered(like, (one) => `<${one.iri}>`)]);
}

// -- the clause of a table ----------------------------------------------------------------------------------------------

/** The name of a column as a clause has it: in quotes where it is no plain words, or has words of the clause. */
export function column(name) {
  const own = new Set(wordsOf("table").flatMap((one) => one.split(" ")));
  const plain = name.split(" ").every((word) => PLAIN.test(word) && !own.has(word.toLowerCase()));
  return plain ? name : name.includes('"') ? `\`${name}\`` : `"${name}"`;
}

async function table(asked) {
  const rest = blanked(asked.before, /"[^"]*"|`[^`]*`|'(?:[^']|'')*'(?!')/g, "0");
  const quoted = /(?<mark>["`])(?<text>(?:(?!\1).)*)$|(?<one>')(?<value>(?:[^']|'')*)$/s.exec(rest)?.groups;
  if (quoted) {
    const mark = quoted.mark ?? quoted.one, text = asked.before.slice(rest.length - (quoted.text ?? quoted.value).length), close = asked.after.startsWith(mark) ? "" : mark;
    if (!text && !asked.explicit) return null;
    const found = await names(mark === "'" ? text.replaceAll("''", "'") : text, mark === "'" ? ["entity"] : ["predicate"], asked.signal);
    const usable = found.filter((one) => mark === "'" || !one.name.includes(mark));
    return answer(asked.pos - text.length, offered(usable, (one) => (mark === "'" ? one.name.replaceAll("'", "''") : one.name) + close));
  }
  const own = new Set(wordsOf("table").flatMap((one) => one.split(" ")));
  const phrase = /[\p{L}_][\p{L}\p{N}_ ]*$/u.exec(rest)?.[0] ?? "", before = rest.slice(0, rest.length - phrase.length).trimEnd();
  // The name begins behind the last word of the clause itself; the word at the caret may yet become a name.
  const parts = phrase.split(" ");
  let last = "";
  while (parts.length > 1 && parts.slice(0, -1).some((one) => own.has(one.toLowerCase()) || /^\d/.test(one))) last = parts.shift().toLowerCase();
  const name = parts.join(" "), written = name.trimStart(), word = parts.at(-1);
  if ((!written && !(asked.explicit && /(?:^|[\s(,@])$/.test(rest))) || ["limit", "offset"].includes(last)) return null;
  const whole = words("table", word).map((one) => ({ ...one, apply: written.slice(0, written.length - word.length) + one.label + (one.type === "function" ? "" : " ") }));
  const key = before.endsWith("@");
  const found = (await names(written, ["predicate"], asked.signal)).filter((one) => (!key || one.kind === "qualifier") && (!written.includes(" ") || begins(one.name, written)));
  return answer(asked.pos - written.length, [...(word && !key ? whole : []), ...offered(found, (one) => column(one.name))]);
}

// -- KoPL, LLM queries, Cypher ------------------------------------------------------------------------------------------

/** Which roles of KoPL's texts are names of what. */
const KINDS = {
  name: ["entity", "concept"], concept: ["concept"], relation: ["relation"], key: ["attribute"], qkey: ["qualifier"],
  value: ["entity"], qvalue: ["entity"],
};

/** The call that the caret stands in: its function, which argument, and what is written of it. */
function call(before) {
  for (let from = 0; ;) {
    const head = /([A-Za-z_]\w*)\s*\(/.exec(before.slice(from));
    if (!head) return null;
    const first = from + head.index + head[0].length;
    let at = 0, start = first, depth = 1, quoted = false;
    for (from = start; from < before.length && depth; from++) {
      const one = before[from];
      if (quoted) {
        if (one === "\\") from += 1;
        else if (one === '"') quoted = false;
      } else if (one === '"') quoted = !before.slice(start, from).trim();
      else if (one === "(") depth += 1;
      else if (one === ")") depth -= 1;
      else if (one === "," && depth === 1) {
        at += 1;
        start = from + 1;
      }
    }
    if (depth) return { function: head[1], at, written: before.slice(start).trimStart(), whole: before.slice(first).trimStart(), quoted };
  }
}

async function kopl(asked) {
  const functions = state.about.functions, inside = call(asked.before);
  const known = inside && functions.kopl.find((one) => one.name === inside.function);
  if (known) {
    // A comma is part of the only name.
    if (known.texts.length === 1 && !inside.quoted) Object.assign(inside, { at: 0, written: inside.whole });
    const role = known.texts[inside.at];
    if (role === undefined) return null;
    const from = asked.pos - inside.written.length;
    const closed = functions.words[role];
    if (closed) return { from, options: closed.map((label) => ({ label, type: "enum" })) };
    const text = inside.quoted ? unescaped(inside.written.slice(1)) : inside.written;
    if (!text && !asked.explicit) return null;
    const quote = (name) => (inside.quoted ? JSON.stringify(name).slice(0, asked.after.startsWith('"') ? -1 : undefined) : plainly(name));
    return answer(from, offered(await names(text, KINDS[role] ?? [], asked.signal), (one) => quote(one.name)));
  }
  const word = /[A-Za-z]\w*$/.exec(asked.before)?.[0] ?? "";
  if (!word && !asked.explicit) return null;
  return {
    from: asked.pos - word.length,
    options: functions.kopl.map((one) => ({ label: one.name, apply: one.texts.length ? `${one.name}(` : `${one.name}() `, detail: one.texts.join(", "), type: "function" })),
  };
}

/** Names for an open quote: its mark, and what is written behind it. Those that are not `fit` cannot stand there. */
async function between([mark, written], kinds, asked, fit = () => true) {
  const write = (name) => (mark === "`" ? ticked(name) : escaped(name, mark)) + (asked.after.startsWith(mark) ? "" : mark);
  const text = mark === "`" ? written.replaceAll("``", "`").replace(/\\u005c/gi, "\\") : unescaped(written);
  if (!text.trim() && !asked.explicit) return null;
  return answer(asked.pos - written.length, offered((await names(text, kinds, asked.signal)).filter((one) => fit(one.name)), (one) => write(one.name)));
}

const ARGUMENTS = { relation: ["predicate"], head_entity: ["entity", "concept"] };

async function llm(asked) {
  // A quote ends a text only before what may follow one: apostrophes stand within.
  const open = /(?:(\w+)\s*)?[!<>=(,[]\s*(['"])((?:\\.|(?!\2\s*[,)\]"]).)*)$/s.exec(asked.before);
  if (open) return between([open[2], open[3]], ARGUMENTS[open[1]] ?? [], asked, (name) => name.trim() && !name.includes("\r"));
  const word = /[\p{L}_]\w*$/u.exec(asked.before)?.[0];
  if (!word) return null;
  return {
    from: asked.pos - word.length,
    options: state.about.functions.llm_query.map((one) => ({ label: one.name, apply: `${one.name}(`, detail: one.about, type: "function" })),
  };
}

async function cypher(asked) {
  const rest = blanked(asked.before, /'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`/gs), open = opened(rest, "\"'`");
  if (open) return between([open[1], asked.before.slice(asked.before.length - open[2].length)], open[1] === "`" ? ["predicate", "concept"] : ["entity", "concept"], asked);
  const typed = /[:|&]\s*([\p{L}_][\p{L}\p{N}_]*)$/u.exec(rest);
  if (typed) {
    const found = await names(typed[1], ["predicate", "concept"], asked.signal);
    return answer(asked.pos - typed[1].length, offered(found, (one) => (PLAIN.test(one.name) ? one.name : `\`${ticked(one.name)}\``)));
  }
  const word = /[\p{L}_]\w*$/u.exec(asked.before)?.[0] ?? "";
  return word ? answer(asked.pos - word.length, words("cypher", word)) : null;
}

const LANGUAGES = { kopl, llm_query: llm, pattern, logic, sparql, cypher, table };

/** The language of a text whose language is to be recognised, by how it begins. */
function recognised(text) {
  const foreign = FOREIGN.find(([name, looks]) => state.about.languages.includes(name) && looks.test(text))?.[0];
  if (foreign) return foreign;
  if (/^\s*[?$]/.test(text)) return "logic";
  if (/^\s*(?:\(|\[\s*[[(])/.test(text)) return "pattern";
  return /^\s*query\d*\s*:/i.test(text) ? "llm_query" : "kopl";
}

/** What may stand at the caret (CodeMirror's `CompletionContext`), in a language. */
export async function complete(context, language) {
  if (!state.about || language === "words") return null;
  const doc = context.state.doc.toString(), stop = new AbortController();
  context.addEventListener("abort", () => stop.abort(), { onDocChange: true });
  // Of a long text its part around the caret is looked at.
  const before = doc.slice(Math.max(0, context.pos - 20_000), context.pos), after = doc.slice(context.pos, context.pos + 50);
  return LANGUAGES[language === "auto" ? recognised(doc) : language]({ before, after, doc, pos: context.pos, explicit: context.explicit, signal: stop.signal });
}
