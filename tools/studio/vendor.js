// The libraries of the page, as one module: what it uses of them, and nothing else.
export { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, startCompletion } from "@codemirror/autocomplete";
export { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
export { bracketMatching, HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
export { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
export { Compartment, EditorState, Prec } from "@codemirror/state";
export { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers, placeholder } from "@codemirror/view";
export { tags } from "@lezer/highlight";
export { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } from "d3-force";
import { BarController, BarElement, CategoryScale, Chart, LinearScale, LineController, LineElement, PointElement, ScatterController, Tooltip } from "chart.js";

Chart.register(BarController, BarElement, CategoryScale, LinearScale, LineController, LineElement, PointElement, ScatterController, Tooltip);
export { Chart };
