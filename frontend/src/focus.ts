/** What is drawn anew keeps the focus, by the `data-key` of what had it. */

export function keepingFocus(container: Element, rebuild: () => void): void {
  const focused = document.activeElement;
  const key = focused && container.contains(focused) ? focused.getAttribute("data-key") : null;
  rebuild();
  if (key === null) return;
  const again = container.querySelector<HTMLElement | SVGElement>(`[data-key="${CSS.escape(key)}"]`);
  again?.focus({ preventScroll: true });
}
