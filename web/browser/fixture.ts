/** What browser tests share: a daemon for each worker's test file, and a page that is signed in. */
import { test as base, expect, type Page } from '@playwright/test';
import { Daemon } from './daemon';

interface WorkerFixtures {
  daemon: Daemon;
}

interface TestFixtures {
  /** A page that is signed in, at the list of processes. */
  signedIn: Page;
}

export const test = base.extend<TestFixtures, WorkerFixtures>({
  daemon: [
    // biome-ignore lint/correctness/noEmptyPattern: the first parameter of a fixture is a pattern
    async ({}, use) => {
      const daemon = new Daemon();
      await daemon.start();
      await use(daemon);
      await daemon.close();
    },
    { scope: 'worker' },
  ],
  signedIn: async ({ page, daemon }, use) => {
    await open(page, daemon, '/processes');
    await use(page);
  },
});

export { expect };

/** Signs in, where that is needed, and opens a page below the address of the daemon. */
export async function open(page: Page, daemon: Daemon, path: string): Promise<void> {
  await page.goto(daemon.signInLink());
  await expect(page.getByRole('navigation').first()).toBeVisible();
  await page.goto(daemon.url + path);
  await expect(page.getByRole('navigation').first()).toBeVisible();
}
