import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/probformer/web/static",
    emptyOutDir: true,
    target: "es2022",
    cssTarget: "chrome123", // light-dark() stays as it is written
    assetsInlineLimit: 0,
    modulePreload: false,
  },
  server: {
    // For work on the page itself: `probformer explore` answers, Vite serves what changes.
    proxy: { "/api": "http://127.0.0.1:8765" },
  },
});
