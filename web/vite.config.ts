import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

/** The daemon that `npm run dev` talks to: `OSTLER_URL=http://127.0.0.1:7717 npm run dev`. */
const daemon = process.env.OSTLER_URL ?? 'http://127.0.0.1:7717';

/** The messages of a language other than English, which is part of the page. */
const LANGUAGE = /\/i18n\/messages\/(?!en\/)([\w-]+)\//;

export default defineConfig({
  // Below any prefix: files name each other relative to themselves.
  base: './',
  plugins: [svelte()],
  build: {
    target: 'es2022',
    cssMinify: true,
    modulePreload: { polyfill: false },
    // A font or picture as a data: URL would need a wider Content-Security-Policy.
    assetsInlineLimit: 0,
    reportCompressedSize: true,
    rolldownOptions: {
      output: {
        // The messages of a language are one file.
        codeSplitting: { groups: [{ test: LANGUAGE, name: (id) => `language-${LANGUAGE.exec(id)?.[1]}` }] },
      },
    },
  },
  server: {
    proxy: { '/api': { target: daemon, ws: true } },
  },
  test: {
    include: ['src/**/*.test.ts'],
  },
} as Parameters<typeof defineConfig>[0]);
