/** While the daemon takes its time to answer: an action that is asked for again is done once. */
import type { Page } from '@playwright/test';
import { ended, start } from './executions';
import { expect, open, test } from './fixture';

/** Holds what is sent to paths until it is let go; counts it. */
async function held(page: Page, path: RegExp): Promise<{ count: () => number; letGo: () => void }> {
  let letGo = () => {};
  const gate = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  let count = 0;
  await page.route(path, async (route) => {
    if (route.request().method() !== 'POST') return route.fallback();
    count += 1;
    await gate;
    await route.continue();
  });
  return { count: () => count, letGo };
}

test('the dialog starts one command and stays until that is answered', async ({ page, daemon }) => {
  const posts = await held(page, /\/api\/v1\/executions$/);
  await open(page, daemon, '/processes');
  await page.getByRole('button', { name: 'Run a command' }).first().click();
  const dialog = page.getByRole('dialog', { name: 'Run a command' });
  await dialog.getByLabel('Directory').fill(daemon.dir);
  const command = dialog.getByRole('textbox', { name: 'Command' });
  await command.fill('sleep 300 # once');
  for (let press = 0; press < 3; press += 1) await command.press('Control+Enter');
  await expect(dialog.getByRole('button', { name: 'Starting' })).toBeDisabled();
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  await expect(dialog).toBeVisible();
  posts.letGo();
  await expect(page).toHaveURL(/\/p\/\w+$/);
  expect(posts.count()).toBe(1);
});

test('a dialog waits two minutes for a daemon that sends nothing, and can be left then', async ({
  page,
  daemon,
}) => {
  await page.clock.install();
  await open(page, daemon, '/processes');
  await page.getByRole('button', { name: 'Run a command' }).first().click();
  const dialog = page.getByRole('dialog', { name: 'Run a command' });
  await dialog.getByLabel('Directory').fill(daemon.dir);
  await dialog.getByRole('textbox', { name: 'Command' }).fill('true # unanswered');
  await daemon.whileStopped(async () => {
    await dialog.getByRole('button', { name: 'Run', exact: true }).click();
    await expect(dialog.getByRole('button', { name: 'Starting' })).toBeDisabled();
    await page.clock.fastForward(60_000);
    await expect(dialog.getByRole('button', { name: 'Starting' })).toBeDisabled();
    await page.clock.fastForward(70_000);
    await expect(dialog.getByRole('alert')).toContainText('The daemon does not answer.');
    await page.keyboard.press('Escape');
    await expect(dialog).toBeHidden();
  });
});

test('a dialog waits on for a daemon that sends other things', async ({ page, daemon }) => {
  await page.clock.install();
  const posts = await held(page, /\/api\/v1\/executions$/);
  await open(page, daemon, '/processes?label=meanwhile');
  await page.getByRole('button', { name: 'Run a command' }).first().click();
  const dialog = page.getByRole('dialog', { name: 'Run a command' });
  await dialog.getByLabel('Directory').fill(daemon.dir);
  await dialog.getByRole('textbox', { name: 'Command' }).fill('true # late');
  await dialog.getByRole('button', { name: 'Run', exact: true }).click();
  for (let round = 0; round < 3; round += 1) {
    await page.clock.fastForward(70_000);
    const { uuid } = await start(daemon, `true # ${round}`, { labels: ['meanwhile'] });
    await expect(page.locator(`[data-row="${uuid}"]`)).toBeAttached();
    await expect(dialog.getByRole('button', { name: 'Starting' })).toBeDisabled();
  }
  posts.letGo();
  await expect(page).toHaveURL(/\/p\/\w+$/);
});

test('one is run again once, however often that is pressed', async ({ page, daemon }) => {
  const { id, uuid } = await start(daemon, 'true # again', { labels: ['again'] });
  await ended(daemon, id);
  const posts = await held(page, /\/again$/);
  await open(page, daemon, '/processes?label=again');
  await expect(page.locator(`[data-row="${uuid}"]`)).toBeVisible();
  await page.keyboard.press('j');
  await expect(page.locator(`[data-row="${uuid}"]`)).toBeFocused();
  await page.keyboard.press('r');
  await page.keyboard.press('r');
  posts.letGo();
  await expect(page.locator(`[data-row="${uuid}"]`)).toContainText('Started again as');
  expect(posts.count()).toBe(1);
});

test('a double click on Rerun starts one; whoever went elsewhere meanwhile stays there', async ({
  page,
  daemon,
}) => {
  const { id } = await start(daemon, 'true # twice');
  await ended(daemon, id);
  const posts = await held(page, /\/again$/);
  await open(page, daemon, `/p/${id}`);
  await page.getByRole('button', { name: 'Rerun', exact: true }).first().dblclick({ force: true });
  await page.getByRole('link', { name: 'History' }).first().click();
  await expect(page).toHaveURL(/\/history$/);
  const answer = page.waitForResponse(/\/again$/);
  posts.letGo();
  await (await answer).finished();
  await page.evaluate(
    () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))),
  );
  await expect(page).toHaveURL(/\/history$/);
  expect(posts.count()).toBe(1);
});
