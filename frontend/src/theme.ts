/** Light, dark, or as the system says; stored if the browser allows it. */

import { type Chips, chips } from "./chips";

const KEY = "probformer-theme";
const THEMES = ["auto", "light", "dark"];

export function themeSwitch(): Chips {
  const choice = chips(
    "Theme",
    THEMES.map((theme) => [theme, theme] as const),
    (theme) => {
      apply(theme);
      remember(theme);
    },
  );
  const theme = remembered();
  apply(theme);
  choice.choose(theme);
  return choice;
}

function apply(theme: string): void {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

function remember(theme: string): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // private windows may refuse: the choice holds until the page is closed
  }
}

function remembered(): string {
  try {
    const theme = localStorage.getItem(KEY) ?? "auto";
    return THEMES.includes(theme) ? theme : "auto";
  } catch {
    return "auto";
  }
}
