/** What browser tests share: a daemon for each worker, and a page that is signed in. */
import { test as base, expect, type Page } from '@playwright/test';
import { Daemon } from './daemon';

interface WorkerFixtures {
  daemon: Daemon;
}

interface TestFixtures {
  /** A page that is signed in, at the list of processes. */
  signedIn: Page;
}

// biome-ignore lint/correctness/noEmptyPattern: the first parameter of a fixture is a pattern
async function withDaemon({}: object, use: (daemon: Daemon) => Promise<void>): Promise<void> {
  const daemon = new Daemon();
  await daemon.start();
  await use(daemon);
  await daemon.close();
}

export const test = base.extend<TestFixtures, WorkerFixtures>({
  daemon: [withDaemon, { scope: 'worker' }],
  signedIn: async ({ page, daemon }, use) => {
    await open(page, daemon, '/processes');
    await use(page);
  },
});

/** For a file whose tests see all executions: its daemon runs those of no other file. */
export const testApart = test.extend<object, WorkerFixtures>({ daemon: [withDaemon, { scope: 'worker' }] });

export { expect };

/** Signs in, where that is needed, and opens a page below the address of the daemon. */
export async function open(page: Page, daemon: Daemon, path: string): Promise<void> {
  await page.goto(daemon.signInLink());
  await expect(page.getByRole('navigation').first()).toBeVisible();
  await page.goto(daemon.url + path);
  // The page itself: it listens to its keys from then on.
  await expect(page.getByRole('main')).not.toBeEmpty();
}
