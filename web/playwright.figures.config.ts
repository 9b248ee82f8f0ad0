import base from './playwright.config';

/** What the page loads and how fast it is: `OSTLER_BIN=… npm run figures` prints rows of a table. */
export default {
  ...base,
  grep: /@figures/,
  workers: 1,
  timeout: 600_000,
  reporter: './browser/figures-reporter.ts',
};
