/** Elements: strings become text nodes or attribute values, and are never parsed as markup. */

type Value = string | number | boolean | ((event: never) => void);
type Child = Node | string | null;

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element; a function is a listener (`onclick`), true an empty attribute, false none. */
export function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Record<string, Value> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return filled(document.createElement(name), attributes, children);
}

export function svg<K extends keyof SVGElementTagNameMap>(
  name: K,
  attributes: Record<string, Value> = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled<E extends Element>(
  made: E,
  attributes: Record<string, Value>,
  children: Child[],
): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") {
      made.addEventListener(name.slice(2), value as (event: Event) => void);
    } else if (value !== false) {
      made.setAttribute(name, value === true ? "" : String(value));
    }
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

let made = 0;

/** A unique id, for a label and its input, as there may be two panels. */
export function uniqueId(what: string): string {
  made += 1;
  return `${what}-${made}`;
}

/** An error message, which screen readers announce; an empty one takes no space. */
export function errorLine(): HTMLParagraphElement {
  return element("p", { class: "error", role: "alert" });
}

/** Download a file. */
export function download(content: Blob, name: string): void {
  const address = URL.createObjectURL(content);
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export function percent(p: number): string {
  return p > 0 && p < 0.01 ? "<\u00a01\u00a0%" : `${Math.round(100 * p)}\u00a0%`;
}

export function counted(count: number, what: string): string {
  return `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
}
