// The editor: CodeMirror with colours, completion of functions and of the graph's names, and messages where they belong.

import {
  autocompletion, bracketMatching, closeBrackets, closeBracketsKeymap, Compartment, completionKeymap, defaultKeymap, drawSelection,
  EditorState, EditorView, HighlightStyle, highlightActiveLine, history, historyKeymap, keymap, lineNumbers, lintGutter, lintKeymap,
  placeholder, Prec, setDiagnostics, StreamLanguage, syntaxHighlighting, tags,
} from "./vendor.js";
import { get } from "./api.js";
import { state } from "./state.js";

const WORDS = {
  sparql: /^(select|where|filter|optional|union|prefix|base|construct|ask|describe|limit|offset|order|by|group|having|distinct|values|bind|as|minus|not|in|exists|asc|desc|a)$/i,
  cypher: /^(match|where|return|with|optional|unwind|limit|skip|order|by|as|distinct|and|or|not|in|call|yield|contains|starts|ends|is|null)$/i,
  logic: /^(exists|and|or|not)$/,
};

function mode(language) {
  return StreamLanguage.define({
    token(stream) {
      if (stream.eatSpace()) return null;
      if (stream.match(/^(#|\/\/).*/) && language !== "kopl") return "comment";
      if (stream.match(/^"(?:[^"\\]|\\.)*"?/) || stream.match(/^'(?:[^'\\]|\\.)*'?/)) return "string";
      if (stream.match(/^<[^<>\s]*>/)) return "string";
      if (stream.match(/^[?$][\p{L}\w]+/u)) return "variableName";
      if (stream.match(/^\d+(?:\.\d+)?/)) return "number";
      const word = stream.match(/^[\p{L}_][\p{L}\w]*/u);
      if (word) {
        if (stream.match(/^\s*\(/, false)) return "keyword";
        return WORDS[language]?.test(word[0]) ? "keyword" : null;
      }
      stream.next();
      return null;
    },
  });
}

const COLOURS = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--keyword)" }, { tag: tags.string, color: "var(--string)" }, { tag: tags.number, color: "var(--number)" },
  { tag: tags.variableName, color: "var(--variable)" }, { tag: tags.comment, color: "var(--muted)" },
]);

/** Which roles of KoPL's texts are names of what. */
const KINDS = {
  name: ["entity", "concept"], concept: ["concept"], relation: ["predicate"], key: ["predicate"], qkey: ["predicate"],
  value: ["entity"], qvalue: ["entity"],
};

async function names(text, kinds, from, quote, aborted) {
  const found = await get("names", { text, kinds, graph: state.graph, limit: 30 }, aborted).catch(() => ({ names: [] }));
  return {
    from, filter: false,
    options: found.names.map((one) => ({ label: one.name, apply: quote(one.name), detail: one.about, type: one.kind === "entity" ? "constant" : "property" })),
  };
}

/** The call that the caret stands in: its function, which argument, and what is written of it. */
function call(before) {
  const found = /([A-Za-z_]\w*)\s*\(((?:[^()"]|"(?:[^"\\]|\\.)*"?)*)$/.exec(before);
  if (!found) return null;
  let at = 0, start = 0, quoted = false;
  for (let i = 0; i < found[2].length; i++) {
    if (found[2][i] === '"') quoted = !quoted;
    else if (found[2][i] === "," && !quoted) {
      at += 1;
      start = i + 1;
    }
  }
  const raw = found[2].slice(start), written = raw.trimStart();
  return { function: found[1], at, written, quoted };
}

async function complete(context, language) {
  const before = context.state.sliceDoc(Math.max(0, context.pos - 2000), context.pos);
  const functions = state.about?.functions ?? { kopl: [], llm_query: [], words: {} };
  const signal = new AbortController();
  context.addEventListener("abort", () => signal.abort(), { onDocChange: true });
  if (language === "kopl" || language === "auto") {
    const inside = call(before);
    const known = inside && functions.kopl.find((one) => one.name === inside.function);
    if (known) {
      const role = known.texts[inside.at];
      if (role === undefined) return null;
      const from = context.pos - inside.written.length;
      const closed = functions.words[role];
      if (closed) return { from, options: closed.map((label) => ({ label, type: "enum" })) };
      const text = inside.written.replace(/^"/, "");
      if (!text && !context.explicit) return null;
      const quote = (name) => inside.quoted || /[,()"\\]|^\s|\s$/.test(name) ? JSON.stringify(name).slice(0, inside.quoted ? -1 : undefined) : name;
      return names(text, KINDS[role] ?? [], from, quote, signal.signal);
    }
    const word = context.matchBefore(/[A-Za-z]\w*/);
    if (!word && !context.explicit) return null;
    return {
      from: word?.from ?? context.pos,
      options: functions.kopl.map((one) => ({ label: one.name, apply: one.texts.length ? `${one.name}(` : `${one.name}() `, detail: one.texts.join(", "), type: "function" })),
    };
  }
  const quoted = /(["'<:(|[]|-\[)([^"'<>()|[\]]{0,80})$/.exec(before);
  const word = context.matchBefore(/[\p{L}_]\w*/u);
  if (language === "llm_query" && word && !/'[^'\n]*$/.test(before)) {
    return { from: word.from, options: functions.llm_query.map((one) => ({ label: one.name, apply: `${one.name}(`, detail: one.about, type: "function" })) };
  }
  if (language === "words" || !quoted || (!quoted[2].trim() && !context.explicit)) return null;
  return names(quoted[2].trimStart(), [], context.pos - quoted[2].trimStart().length, (name) => name, signal.signal);
}

/** An editor in `parent`; `run` is what Ctrl-Enter does. */
export function makeEditor(parent, run) {
  let language = "auto";
  const tongue = new Compartment(), hint = new Compartment();
  const view = new EditorView({
    parent,
    state: EditorState.create({
      extensions: [
        EditorView.cspNonce.of(document.body.dataset.nonce),
        Prec.highest(keymap.of([{ key: "Mod-Enter", run: () => (run(), true) }])),
        lineNumbers(), history(), drawSelection(), bracketMatching(), closeBrackets(), highlightActiveLine(), lintGutter(),
        keymap.of([...closeBracketsKeymap, ...completionKeymap, ...defaultKeymap, ...historyKeymap, ...lintKeymap]),
        autocompletion({ override: [(context) => complete(context, language)], activateOnTypingDelay: 150 }),
        syntaxHighlighting(COLOURS), EditorView.lineWrapping, tongue.of(mode("kopl")), hint.of(placeholder("")),
        EditorView.contentAttributes.of({ "aria-label": "Program or question", "aria-describedby": "keys", spellcheck: "false" }),
      ],
    }),
  });
  return {
    view,
    get text() {
      return view.state.doc.toString();
    },
    set text(text) {
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
    },
    speak(name, example) {
      language = name;
      view.dispatch({ effects: [tongue.reconfigure(mode(name === "auto" ? "kopl" : name)), hint.reconfigure(placeholder(example))] });
    },
    /** Messages with places: `{span, text, severity, actions}`. Offsets of the server count characters, those here UTF-16. */
    mark(messages) {
      const found = [...view.state.doc.toString()], before = (at) => found.slice(0, at).join("").length, size = view.state.doc.length;
      view.dispatch(setDiagnostics(view.state, messages.filter((one) => one.span).map((one) => {
        const from = Math.min(before(one.span[0]), size), to = Math.min(Math.max(before(one.span[1]), from), size);
        return { from, to, severity: one.severity, message: one.text, actions: one.actions };
      })));
    },
    /** Put a name in the place of what stands there, quoted as that was. */
    replace(span, name) {
      const found = [...view.state.doc.toString()];
      const [from, to] = span.map((at) => found.slice(0, at).join("").length);
      const old = view.state.sliceDoc(from, to), mark = /^["']/.exec(old)?.[0];
      let text = name;
      if (mark) text = mark + name.replaceAll("\\", "\\\\").replaceAll(mark, "\\" + mark) + (old.length > 1 && old.endsWith(mark) ? mark : "");
      else if (/[,()"]/.test(name) && view.state.sliceDoc(Math.max(0, from - 1), from) !== "'") text = JSON.stringify(name);
      view.dispatch({ changes: { from, to, insert: text } });
    },
    focus: () => view.focus(),
  };
}
