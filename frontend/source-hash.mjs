// Writes a hash of the sources beside the built page, which a test compares without npm.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const files = [
  "index.html",
  "package-lock.json",
  "tsconfig.json",
  "vite.config.js",
  ...readdirSync(join(here, "src"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(here.length + 1).replaceAll("\\", "/")),
].sort();

const hash = createHash("sha256");
for (const file of files) {
  hash.update(`${file}\0${readFileSync(join(here, file), "utf8").replaceAll("\r\n", "\n")}\0`);
}
writeFileSync(
  join(here, "../src/probformer/web/static/source.sha256"),
  `${hash.digest("hex")}\n`,
);
