import { ApiError, fetchRuns } from "./api";
import { App } from "./app";
import { element } from "./dom";

const page = document.getElementById("page");

try {
  const runs = await fetchRuns();
  page?.replaceChildren(new App(runs).node);
} catch (reason) {
  if (!(reason instanceof ApiError)) throw reason;
  page?.replaceChildren(element("p", { class: "error", role: "alert" }, reason.message));
}
