/** Buttons that save the panel: as a picture, or as a page that loads no other resource. */

import { ApiError, draw, type Drawing } from "./api";
import { download, element, errorLine } from "./dom";

type Format = Drawing["format"];

export function shareBar(drawingFor: (format: Format) => Drawing | null): HTMLElement {
  const error = errorLine();
  const save = async (format: Format) => {
    const drawing = drawingFor(format);
    if (!drawing) return;
    error.textContent = "";
    try {
      download(await draw(drawing), `${drawing.run}.${format}`);
    } catch (reason) {
      if (!(reason instanceof ApiError)) throw reason;
      error.textContent = reason.message;
    }
  };
  const button = (format: Format, text: string) =>
    element("button", { type: "button", onclick: () => void save(format) }, text);
  const buttons = [button("svg", "Picture (SVG)"), button("html", "Page (HTML)")];
  return element(
    "div",
    { class: "share-bar" },
    element("p", { class: "buttons" }, element("span", { class: "dim" }, "Save as"), ...buttons),
    error,
  );
}
