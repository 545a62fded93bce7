import { defineConfig } from "vite";

const page = {
  base: "./",
  build: {
    outDir: "../src/probformer/web/static",
    emptyOutDir: true,
    target: "es2022",
    cssTarget: "chrome123", // keeps light-dark() as it is
    assetsInlineLimit: 0,
    modulePreload: false,
  },
  server: {
    // While you work on the page, Vite serves it and `probformer explore` answers.
    proxy: { "/api": "http://127.0.0.1:8765" },
  },
};

// tests/viz/test_arc_layout_cases.py runs this in a browser
const comparison = {
  build: {
    outDir: "../tests/viz/page",
    emptyOutDir: true,
    target: "es2022",
    lib: { entry: "src/comparison.ts", formats: ["es"], fileName: "comparison" },
  },
};

export default defineConfig(({ mode }) => (mode === "comparison" ? comparison : page));
