/** The width of a text in the font of the pictures. */

const FONT = "Helvetica, Arial, sans-serif";

const context = document.createElement("canvas").getContext("2d");

export function pixels(text: string, size: number): number {
  if (!context) return text.length * size * 0.6;
  context.font = `${size}px ${FONT}`;
  return context.measureText(text).width;
}
