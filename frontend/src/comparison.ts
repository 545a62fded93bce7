/** What a test runs in a browser, to compare it with the same functions in Python. */

export { layOut } from "./arcLayout";
export { escaped, runRightToLeft } from "./words";
