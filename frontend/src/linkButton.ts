/** A button that copies a link with the whole state. */

import { element } from "./dom";

export function linkButton(linkNow: () => string): HTMLElement {
  const status = element("span", { role: "status", class: "dim" });
  const address = element("input", { readonly: true, hidden: true, "aria-label": "Link" });
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(linkNow());
      address.hidden = true;
      status.textContent = "Copied";
      setTimeout(() => (status.textContent = ""), 2500);
    } catch {
      // permission denied, or a host without a secure context
      address.value = linkNow();
      address.hidden = false;
      address.select();
      status.textContent = "Copy it from here";
    }
  };
  const button = element("button", { type: "button", onclick: () => void copy() }, "Copy link");
  return element("div", { class: "field link" }, button, address, status);
}
