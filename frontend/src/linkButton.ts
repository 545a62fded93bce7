/** Puts a link with the whole state on the clipboard. */

import { element } from "./dom";

export function linkButton(linkNow: () => string): HTMLElement {
  const said = element("span", { role: "status", class: "dim" });
  const address = element("input", { readonly: true, hidden: true, "aria-label": "Link" });
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(linkNow());
      address.hidden = true;
      said.textContent = "Copied";
      setTimeout(() => (said.textContent = ""), 2500);
    } catch {
      // without leave to write, or on a host that the browser does not trust
      address.value = linkNow();
      address.hidden = false;
      address.select();
      said.textContent = "Copy it from here";
    }
  };
  const button = element("button", { type: "button", onclick: () => void copy() }, "Copy link");
  return element("div", { class: "field link" }, button, address, said);
}
