// The libraries of the page, as one module: what it uses of them, and nothing else.
export { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, startCompletion } from "@codemirror/autocomplete";
export { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
export { bracketMatching, HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
export { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
export { Compartment, EditorState, Prec } from "@codemirror/state";
export { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers, placeholder } from "@codemirror/view";
export { tags } from "@lezer/highlight";
export { default as cytoscape } from "cytoscape";
import { BarController, BarElement, CategoryScale, Chart, LinearScale, PointElement, ScatterController, Tooltip } from "chart.js";

Chart.register(BarController, BarElement, CategoryScale, LinearScale, PointElement, ScatterController, Tooltip);
export { Chart };
