import base from './playwright.config';

/** The pictures of the documentation: `OSTLER_BIN=… npm run pictures` writes them to `docs/images/`. */
export default { ...base, testMatch: 'pictures.ts', workers: 1, timeout: 120_000 };
