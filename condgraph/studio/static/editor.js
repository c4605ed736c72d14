// The editor: CodeMirror with colours, completion of functions and of the graph's names, and messages where they belong.

import {
  autocompletion, bracketMatching, closeBrackets, closeBracketsKeymap, Compartment, completionKeymap, defaultKeymap, drawSelection,
  EditorState, EditorView, HighlightStyle, highlightActiveLine, history, historyKeymap, keymap, lineNumbers, lintGutter, lintKeymap,
  placeholder, Prec, setDiagnostics, StreamLanguage, syntaxHighlighting, tags,
} from "./vendor.js";
import { complete, escaped, plainly, wordsOf } from "./completion.js";

function mode(language) {
  const own = new Set(wordsOf(language).flatMap((one) => one.replace("(", "").toLowerCase().split(" ")));
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
        return own.has(word[0].toLowerCase()) ? "keyword" : null;
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

/** An editor in `parent`, called `label`; `run` is what Ctrl-Enter does. One with `quote`, which writes names, is a line or two. */
export function makeEditor(parent, run, label, quote = null) {
  let language = "auto";
  const tongue = new Compartment(), hint = new Compartment();
  const view = new EditorView({
    parent,
    state: EditorState.create({
      extensions: [
        EditorView.cspNonce.of(document.body.dataset.nonce),
        Prec.highest(keymap.of([{ key: "Mod-Enter", run: () => (run(), true) }])),
        quote ? [] : lineNumbers(), history(), drawSelection(), bracketMatching(), closeBrackets(), highlightActiveLine(), quote ? [] : lintGutter(),
        keymap.of([...closeBracketsKeymap, ...completionKeymap, ...defaultKeymap, ...historyKeymap, ...lintKeymap]),
        autocompletion({ override: [(context) => complete(context, language)], activateOnTypingDelay: 150 }),
        syntaxHighlighting(COLOURS), EditorView.lineWrapping, tongue.of(mode("kopl")), hint.of(placeholder("")),
        EditorView.contentAttributes.of({ "aria-label": label, "aria-describedby": "keys", spellcheck: "false" }),
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
      if (quote) text = quote(name);
      else if (mark) text = mark + escaped(name, mark) + (old.length > 1 && old.endsWith(mark) ? mark : "");
      else if (view.state.sliceDoc(Math.max(0, from - 1), from) === "'") text = escaped(name, "'");
      else text = plainly(name);
      view.dispatch({ changes: { from, to, insert: text } });
    },
    /** Put a text at the caret. */
    type(text) {
      const { from, to } = view.state.selection.main;
      view.dispatch({ changes: { from, to, insert: text }, selection: { anchor: from + text.length } });
    },
    /** Put a name at the caret, quoted as the language quotes it. */
    insert(name) {
      if (quote) this.type(quote(name));
      else if (language === "cypher") this.type(/^[\p{L}_][\p{L}\p{N}_]*$/u.test(name) ? name : `\`${name.replaceAll("`", "``")}\``);
      else this.type(language === "words" ? name : plainly(name));
    },
    focus: () => view.focus(),
  };
}
