/** The list of processes on daemons of its own: none, many, and one that is killed. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Daemon } from './daemon';
import { post, start, startMany } from './executions';
import { expect, open, test } from './fixture';
import { note } from './measurement';
import { fileServer, freePort, startService } from './service-helpers';

/** As many as are started within a few seconds. */
const MANY = Number(process.env.ROWS ?? 600);
const MANY_TEXT = MANY.toLocaleString('en-GB');

test('nothing has run yet: what to do is said', async ({ page }) => {
  const daemon = new Daemon();
  await daemon.start();
  try {
    await open(page, daemon, '/processes');
    await expect(page.getByText('Nothing has run yet.')).toBeVisible();
    await expect(page.getByText('ostler run -- echo hello')).toBeVisible();
    await expect(page.getByRole('link', { name: 'Connect an agent' })).toBeVisible();
  } finally {
    await daemon.close();
  }
});

test('hundreds of rows scroll smoothly, and are cleaned at once', { tag: ['@figures', '@full'] }, async ({
  page,
}) => {
  test.setTimeout(600_000);
  const daemon = new Daemon();
  await daemon.start();
  try {
    const begun = Date.now();
    await startMany(daemon, MANY, ['many']);
    const startMs = Date.now() - begun;
    const running = await start(daemon, 'sleep 300', { labels: ['stays'] });
    await open(page, daemon, '/processes');
    const grid = page.getByRole('grid');
    await expect(grid).toHaveAttribute('aria-rowcount', String(MANY + 2));
    const drawn = await page.locator('[data-row]').count();
    expect(drawn).toBeLessThan(40);

    const result = await page.evaluate(scrollThrough);
    note(`scrolling through ${MANY} rows`, JSON.stringify({ startMs, ...result }));
    expect(result.empty).toBe(0);
    expect(result.rows).toBeLessThan(60);
    expect(result.median).toBeLessThan(100);

    await page.keyboard.press('j');
    await page.keyboard.press('End');
    await expect(page.locator('[data-row]:focus')).toHaveAttribute('aria-rowindex', String(MANY + 2));
    await page.keyboard.press('Home');
    await expect(page.locator('[data-row]:focus')).toHaveAttribute('aria-rowindex', '2');

    // Typing narrows the rows without delay.
    const typed = Date.now();
    await page.getByRole('textbox', { name: 'Search processes' }).pressSequentially('sleep');
    await expect(grid).toHaveAttribute('aria-rowcount', '2');
    expect(Date.now() - typed).toBeLessThan(3_000);
    await page.keyboard.press('Escape');

    await page.getByRole('button', { name: 'Clean finished…' }).click();
    const dialog = page.getByRole('dialog', { name: `Clean all ${MANY_TEXT} finished processes?` });
    await expect(dialog.getByRole('button', { name: 'Cancel' })).toBeFocused();
    await dialog.getByRole('button', { name: `Clean all ${MANY_TEXT}` }).click();
    await expect(page.getByRole('toolbar')).toContainText(`${MANY_TEXT} cleaned`, { timeout: 240_000 });
    await expect(page.locator('[data-row]')).toHaveCount(1);
    await expect(page.getByRole('row').filter({ hasText: running.id })).toContainText('Running');
  } finally {
    await daemon.close();
  }
});

/** Scrolls as a wheel does, and then to the end by leaps; says what was drawn, and how long frames took. */
async function scrollThrough(): Promise<{ empty: number; rows: number; median: number; leap: number }> {
  const scroller = document.querySelector('.page');
  if (!scroller) throw new Error('no list');
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  const distance = scroller.scrollHeight - scroller.clientHeight;
  const result = { empty: 0, rows: 0 };
  const times: number[][] = [[], []];
  for (let step = 1; step <= 160; step += 1) {
    const leaps = step > 120;
    const begun = performance.now();
    scroller.scrollTop = leaps ? (distance * (step - 120)) / 40 : step * 120;
    await frame();
    await frame();
    times[Number(leaps)]?.push(performance.now() - begun);
    const box = scroller.getBoundingClientRect();
    const middle = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    if (!middle?.closest('[data-row]')) result.empty += 1;
    result.rows = Math.max(result.rows, document.querySelectorAll('[data-row]').length);
  }
  scroller.scrollTop = 0;
  await frame();
  const median = (values: number[] = []) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
  return { ...result, median: median(times[0]), leap: median(times[1]) };
}

test('a daemon that is away blocks actions, and its return goes on where it was', async ({ page }) => {
  const daemon = new Daemon();
  await daemon.start();
  try {
    const one = await start(daemon, 'sleep 300', { labels: ['kept'] });
    await open(page, daemon, '/processes?label=kept');
    const row = page.getByRole('row').filter({ hasText: one.id });
    await expect(row).toContainText('Running');
    await daemon.kill();
    await expect(page.getByText(/^Lost the connection at/)).toBeVisible({ timeout: 20_000 });
    await expect(row).toContainText('Running');
    await expect(row.getByRole('button', { name: /^Stop/ })).toBeDisabled();
    await expect(page.getByRole('button', { name: 'Run a command' })).toBeDisabled();
    await daemon.start();
    await expect(row.getByRole('button', { name: /^Stop/ })).toBeEnabled({ timeout: 20_000 });
    const two = daemon.run(['true'], '--label', 'kept');
    await expect(page.getByRole('row').filter({ hasText: two.id })).toContainText('Completed');
  } finally {
    await daemon.close();
  }
});

test('a service is a row with its link', async ({ page, daemon }) => {
  const port = await freePort();
  startService(daemon, 'listed', fileServer(port));
  await open(page, daemon, `/processes?q=${port}`);
  const row = page.locator('[data-row]');
  await expect(row).toContainText('Ready');
  const link = row.getByRole('link', { name: `localhost:${port}` });
  await expect(link).toHaveAttribute('href', new RegExp(`^http://localhost:${port}`));
  await expect(link).toHaveAttribute('rel', 'noopener noreferrer');
});

test('where the policy asks, a person agrees and runs the command from the form', async ({ page }) => {
  const daemon = new Daemon();
  const configuration = join(daemon.dir, 'config', 'ostler');
  mkdirSync(configuration, { recursive: true });
  writeFileSync(join(configuration, 'policy.toml'), POLICY);
  await daemon.start();
  try {
    await open(page, daemon, '/processes');
    await page.getByRole('button', { name: 'Run a command' }).first().click();
    const dialog = page.getByRole('dialog', { name: 'Run a command' });
    await dialog.getByText('Program and arguments').click();
    await dialog.getByRole('textbox', { name: 'Command' }).fill('touch\nagreed here');
    await dialog.getByLabel('Directory').fill(daemon.dir);
    await dialog.getByRole('button', { name: 'Run', exact: true }).click();
    const question = dialog.getByRole('link', { name: /^Answer the question/ });
    const id = (await question.getAttribute('href'))?.split('/').at(-1) ?? '';
    await post(daemon, `/api/v1/interactions/${id}/answer`, { value: 'yes' });
    await dialog.getByRole('button', { name: 'Run', exact: true }).click();
    await expect(page).toHaveURL(/\/p\/\w+$/);
    await expect.poll(() => existsSync(join(daemon.dir, 'agreed here'))).toBe(true);
  } finally {
    await daemon.close();
  }
});

const POLICY = `
default = "allow"

[[rule]]
id = "ask-touch"
prefix = ["touch"]
decision = "ask"
justification = "makes files"
match = ["touch a"]
not_match = ["cat touch"]
`;
