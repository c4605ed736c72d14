// The libraries of drawings and charts, as one module that is read when something is drawn.
export { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } from "d3-force";
import { BarController, BarElement, CategoryScale, Chart, LinearScale, LineController, LineElement, PointElement, ScatterController, Tooltip } from "chart.js";

Chart.register(BarController, BarElement, CategoryScale, LinearScale, LineController, LineElement, PointElement, ScatterController, Tooltip);
export { Chart };
