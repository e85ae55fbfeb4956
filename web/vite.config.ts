import { defineConfig } from "vite";

// Addresses of files are relative: the page's <base> says where it is mounted.
export default defineConfig({
  base: "./",
  build: {
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    sourcemap: false,
    chunkSizeWarningLimit: 2000,
  },
  server: {
    proxy: Object.fromEntries(
      ["/api", "/openapi.json", "/docs"].map((path) => [path, process.env.ROTA_URL ?? "http://127.0.0.1:7682"]),
    ),
  },
});
