import { defineConfig } from "astro/config";

// The cache belongs to the project: its node_modules are shared with others.
export default defineConfig({ cacheDir: "./.cache", vite: { cacheDir: "./.vite" } });
