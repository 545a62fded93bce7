/** Keeps the focus when elements are rebuilt, by their `data-key`. */

export function keepingFocus(container: Element, rebuild: () => void): void {
  const focused = document.activeElement;
  const key = focused && container.contains(focused) ? focused.getAttribute("data-key") : null;
  rebuild();
  if (key === null) return;
  const again = container.querySelector<HTMLElement | SVGElement>(`[data-key="${CSS.escape(key)}"]`);
  again?.focus({ preventScroll: true });
}
