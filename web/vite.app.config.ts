import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';
import { viteSingleFile } from 'vite-plugin-singlefile';

/** The dashboard of MCP Apps: one file, which a host shows in a frame without a network. */
export default defineConfig({
  plugins: [svelte(), viteSingleFile()],
  build: {
    target: 'es2022',
    emptyOutDir: false,
    rollupOptions: { input: 'mcp_app.html' },
  },
});
