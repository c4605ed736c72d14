// The explorer in a notebook, as a widget of anywidget: `SOURCES` above has the modules of the page, and the kernel answers calls.

function modules() {
  const made = {};
  const address = (name) => (made[name] ??= URL.createObjectURL(new Blob([SOURCES[name].replace(/from "\.\/([\w.-]+)"/g, (_, other) => `from "${address(other)}"`)], { type: "text/javascript" })));
  return (name) => import(address(name));
}

export default {
  async render({ model, el: place }) {
    // Modules of its own: each view asks through its own model.
    const module = modules(), waiting = new Map();
    const { through } = await module("api.js"), { el } = await module("dom.js"), { Explorer } = await module("explore.js"), { drawEvidence } = await module("evidence.js");
    const heard = ({ number, found, error }) => {
      const [done, failed] = waiting.get(number) ?? [];
      waiting.delete(number);
      if (error) failed?.(new Error(error));
      else done?.(found);
    };
    model.on("msg:custom", heard);
    through((name, fields) => new Promise((...call) => {
      const number = crypto.getRandomValues(new Uint32Array(2)).join("-");
      waiting.set(number, call);
      model.send({ number, arguments: Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) });
    }));
    // Light, as the drawings of notebooks; keys are for the graph, not for the cells.
    const root = el("div", { class: "condgraph-explorer", "data-theme": "light", "data-lm-suppress-shortcuts": "true", onkeydown: (event) => event.stopPropagation() });
    place.append(root, el("p", { id: "said", role: "status", style: "position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%)" }));
    const { entity, evidence, trace } = model.get("begin");
    // The layout needs the size of the place.
    await new Promise(requestAnimationFrame);
    if (entity) new Explorer(root, "What is around an entity").enter(entity);
    else drawEvidence(root, evidence, trace);
    return () => model.off("msg:custom", heard);
  },
};
