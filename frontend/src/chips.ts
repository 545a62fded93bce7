/** A choice of one option: radio buttons styled as chips. */

import { element, uniqueId } from "./dom";

export interface Chips {
  node: HTMLFieldSetElement;
  choose(value: string): void;
}

export function chips(
  legend: string,
  options: readonly (readonly [value: string, text: string])[],
  onChange: (value: string) => void,
): Chips {
  const name = uniqueId("choice");
  const inputs = new Map<string, HTMLInputElement>();
  const labels = options.map(([value, text]) => {
    const onchange = () => onChange(value);
    const input = element("input", { type: "radio", name, value, onchange });
    inputs.set(value, input);
    return element("label", { class: "chip" }, input, element("span", {}, text));
  });
  const node = element("fieldset", { class: "chips" }, element("legend", {}, legend), ...labels);
  return {
    node,
    choose: (value) => {
      const input = inputs.get(value);
      if (input) input.checked = true;
    },
  };
}
