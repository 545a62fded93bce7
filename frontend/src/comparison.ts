/** Functions that a test runs in a browser and compares with the same functions in Python. */

export { layOut } from "./arcLayout";
export { escaped, runRightToLeft } from "./words";
