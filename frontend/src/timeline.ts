/** The slider over iterations or layers, with play and pause and a plot of the free energy. */

import { element, svg, uniqueId } from "./dom";

const SECONDS_PER_STEP = 0.9;
const HEIGHT = 44;

export class Timeline {
  readonly node: HTMLElement;
  private readonly play = element("button", { type: "button", class: "play" });
  private readonly slider = element("input", { type: "range", min: 1, step: 1 });
  private readonly plot = svg("svg", { class: "energy", height: HEIGHT, "aria-hidden": "true" });
  private readonly place = element("output");
  private readonly energy = element("span", { class: "energy-value" });
  private energies: number[] | null = null;
  private timer = 0;

  constructor(
    private readonly stepName: string,
    private readonly onStep: (step: number) => void,
  ) {
    const id = uniqueId("step");
    this.slider.id = id;
    this.place.setAttribute("for", id);
    this.slider.setAttribute("aria-label", stepName);
    this.slider.addEventListener("input", () => {
      this.pause();
      this.onStep(this.slider.valueAsNumber);
    });
    this.play.addEventListener("click", () => (this.timer ? this.pause() : this.start()));
    this.pause();
    this.node = element(
      "div",
      { class: "timeline" },
      this.play,
      element("div", { class: "track" }, this.plot, this.slider),
      element("div", { class: "readout" }, this.place, this.energy),
    );
  }

  /** The steps of a new answer; energies are null if the model has none. */
  draw(steps: number, energies: number[] | null, step: number): void {
    this.slider.max = String(steps);
    this.slider.disabled = this.play.disabled = steps < 2;
    this.energies = energies;
    this.plot.classList.toggle("absent", !energies);
    this.plot.replaceChildren(...(energies ? curve(energies) : []));
    this.show(step);
  }

  /** `step` counts from 0. */
  show(step: number): void {
    const place = `${this.stepName} ${step + 1} of ${this.slider.max}`;
    const energy = this.energies?.[step];
    const energyText = energy === undefined ? "no free energy" : `free energy ${energy.toFixed(2).replace("-", "−")}`;
    this.slider.value = String(step + 1);
    this.slider.setAttribute("aria-valuetext", `${place}, ${energyText}`);
    this.place.textContent = place;
    this.energy.textContent = energyText;
    this.plot.querySelectorAll("circle").forEach((point, at) => {
      point.classList.toggle("current", at === step);
    });
  }

  pause(): void {
    clearInterval(this.timer);
    this.timer = 0;
    this.setPlay("▶\ufe0e", `Play the ${this.stepName}s`);
  }

  private start(): void {
    this.setPlay("❚❚", "Pause");
    const last = Number(this.slider.max);
    this.onStep(this.slider.valueAsNumber === last ? 1 : this.slider.valueAsNumber + 1);
    this.timer = window.setInterval(() => {
      this.onStep(this.slider.valueAsNumber + 1);
      if (this.slider.valueAsNumber >= last) this.pause();
    }, 1000 * SECONDS_PER_STEP);
  }

  private setPlay(sign: string, name: string): void {
    this.play.textContent = sign;
    this.play.setAttribute("aria-label", name);
    this.play.title = name;
  }
}

/** x in per cent, so that points stay above the positions of the slider at any width. */
function curve(energies: readonly number[]): SVGElement[] {
  const least = Math.min(...energies);
  const range = Math.max(...energies) - least || 1;
  const points = energies.map((energy, at) => ({
    x: `${((100 * at) / Math.max(1, energies.length - 1)).toFixed(2)}%`,
    y: 6 + (HEIGHT - 12) * (1 - (energy - least) / range),
  }));
  const lines = points.slice(1).map((to, at) => {
    const from = points[at] ?? to;
    return svg("line", { x1: from.x, y1: from.y, x2: to.x, y2: to.y });
  });
  return [...lines, ...points.map(({ x, y }) => svg("circle", { cx: x, cy: y, r: 3 }))];
}
