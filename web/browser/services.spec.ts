/** The page of services, with real ones. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator, Page } from '@playwright/test';
import { expectAccessible, expectNoOverflow, lengthenTexts } from './axe';
import { Daemon } from './daemon';
import { expect, open, test } from './fixture';
import {
  deafServer,
  failingServer,
  fileServer,
  freePort,
  listServices,
  removeServices,
  requestFailure,
  serverThatFailsOnRequest,
  startByRest,
  startService,
} from './service-helpers';

test.afterEach(({ daemon }) => removeServices(daemon));

const card = (page: Page, name: string): Locator => page.getByRole('article', { name, exact: true });
const button = (of: Locator | Page, name: string): Locator => of.getByRole('button', { name, exact: true });

/** A directory with an `ostler.toml` of a database and a server that needs it. */
async function workspace(daemon: Daemon, name: string): Promise<string> {
  const directory = join(daemon.dir, name);
  mkdirSync(directory, { recursive: true });
  const line = async () => fileServer(await freePort()).join(' ');
  writeFileSync(
    join(directory, 'ostler.toml'),
    `[services.db]\ncommand = "${await line()}"\n[services.api]\ncommand = "${await line()}"\ndepends_on = ["db"]\n`,
  );
  return directory;
}

test('without services, the page says how to start one', async ({ page }) => {
  const daemon = new Daemon();
  await daemon.start();
  try {
    await open(page, daemon, '/services');
    await expect(page.getByText('No background service.')).toBeVisible();
    await expect(page.getByText('ostler service start -- npm run dev')).toBeVisible();
    await expectAccessible(page);
  } finally {
    await daemon.close();
  }
});

test('a card has state, command, address, evidence, port, process id and use', async ({ page, daemon }) => {
  const port = await freePort();
  startService(daemon, 'files', fileServer(port));
  await open(page, daemon, '/services');
  const files = card(page, 'files');
  await expect(files.locator('[data-state="ready"]')).toHaveText('Ready');
  await expect(files).toContainText(`python3 -m http.server ${port} --bind 127.0.0.1`);
  await expect(files).toContainText(
    new RegExp(`Ready after .* 127.0.0.1:${port} listens \\(python3, pid \\d+\\)`),
  );
  await expect(files).toContainText(`:${port}`);
  await expect(files).toContainText(/PID \d+/);
  await expect(files).toContainText(/Memory.*\d+(\.\d)? MB/);
  await expect(files).toContainText(/Processor.*\d+(\.\d)? %/);
  const url = files.getByRole('link', { name: `localhost:${port}` });
  await expect(url).toHaveAttribute('target', '_blank');
  expect(await (await page.request.get((await url.getAttribute('href')) ?? '')).text()).toContain(
    'Directory listing',
  );
});

test('it says why, shows the log, restarts and stops', async ({ page, daemon }) => {
  const port = await freePort();
  startService(daemon, 'files', fileServer(port));
  await open(page, daemon, '/services');
  const files = card(page, 'files');
  await expect(files.locator('[data-state="ready"]')).toBeVisible();
  await button(files, 'Why…').click();
  await expect(files).toContainText(`socket: 127.0.0.1:${port} listens`);
  await expect(files.getByRole('link', { name: 'Logs' })).toHaveAttribute('href', /\/p\/\w+$/);

  const before = await files.getByText(/PID \d+/).textContent();
  await button(files, 'Restart').click();
  await expect(files.getByText(/PID \d+/)).not.toHaveText(before ?? '');
  await expect(files.locator('[data-state="ready"]')).toBeVisible();

  await button(files, 'Stop').click();
  await expect(files.locator('[data-state="stopped"]')).toHaveText('Stopped');
  await expect(files.getByRole('status')).toHaveText(`Stopped. Port ${port} is free.`);
  // The focus is not lost with the button.
  await expect(button(files, 'Start')).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(files.locator('[data-state="ready"]')).toBeVisible();
  await files.getByRole('link', { name: 'Logs' }).click();
  await expect(page).toHaveURL(/\/p\/\w+$/);
});

test('one that does not hear a request to stop can be forced', { tag: '@full' }, async ({ page, daemon }) => {
  startService(daemon, 'deaf', deafServer(await freePort()));
  await open(page, daemon, '/services');
  const deaf = card(page, 'deaf');
  await expect(deaf.locator('[data-state="ready"]')).toBeVisible();
  await button(deaf, 'Stop').click();
  await expect(deaf.locator('[data-state="stopping"]')).toBeVisible();
  await expect(deaf.getByRole('button', { name: /Stopping… \d s/ })).toBeVisible();
  await button(deaf, 'Force stop').click();
  const dialog = page.getByRole('dialog', { name: 'Force deaf to stop?' });
  await expect(button(dialog, 'Cancel')).toBeFocused();
  await button(dialog, 'Force stop').click();
  await expect(deaf.locator('[data-state="stopped"]')).toBeVisible({ timeout: 4_000 });
});

test('a failed one shows its last lines, and is dismissed or started again', async ({ page, daemon }) => {
  const port = await freePort();
  await startByRest(daemon, 'flaky', serverThatFailsOnRequest(port));
  await open(page, daemon, '/services');
  const flaky = card(page, 'flaky');
  await expect(flaky.locator('[data-state="ready"]')).toBeVisible();
  await requestFailure(port);
  await expect(flaky.locator('[data-state="failed"]')).toBeVisible();
  await expect(flaky).toContainText('exit code 1');
  await expect(flaky.locator('pre')).toContainText('ConnectionRefusedError: localhost:6379');
  await button(flaky, 'Start').click();
  await expect(flaky.locator('[data-state="ready"]')).toBeVisible();
  await expect(flaky.locator('[data-state="failed"]')).toHaveCount(0);
  await requestFailure(port);
  await expect(flaky.locator('[data-state="failed"]')).toBeVisible();
  await button(flaky, 'Dismiss').click();
  await expect(flaky).toHaveCount(0);
  await page.getByLabel('Show dismissed').check();
  await expect(page).toHaveURL(/dismissed=1/);
  await expect(flaky.first()).toContainText('Dismissed');
});

test('the holder of a port is named', async ({ page, daemon }) => {
  const port = await freePort();
  daemon.run(fileServer(port));
  await expect
    .poll(() =>
      page.request.get(`http://127.0.0.1:${port}/`).then(
        (it) => it.status(),
        () => 0,
      ),
    )
    .toBe(200);
  startService(daemon, 'clash', fileServer(port));
  await open(page, daemon, '/services');
  const clash = card(page, 'clash');
  await expect(clash.locator('[data-state="failed"]')).toBeVisible();
  await button(clash, 'Why…').click();
  await expect(clash).toContainText(new RegExp(`port ${port}, which it wants, is held by .*python3`));
});

test('a command is recognised, checked and started', async ({ page, daemon }) => {
  const port = await freePort();
  await open(page, daemon, '/services');
  await expect(button(page, 'Start a service').first()).toBeVisible();
  await page.keyboard.press('n');
  const dialog = page.getByRole('dialog', { name: 'Start a service' });
  await dialog.getByLabel('Command').fill('');
  await dialog.getByLabel('Directory').fill('here');
  await button(dialog, 'Start').click();
  await expect(dialog).toContainText('A command is needed.');
  await expect(dialog).toContainText('Allowed: an absolute directory');
  await dialog.getByLabel('Directory').fill(daemon.dir);
  await dialog.getByLabel('Command').fill(`python3 -m http.server ${port} --bind 127.0.0.1`);
  await expect(dialog).toContainText(`Python's server of files: ready when port ${port} answers`);
  await dialog.getByText('More options').click();
  await dialog.getByLabel('Description').fill('Files of the test');
  await dialog.getByLabel('Environment').fill('GREETING=hello');
  await dialog.getByLabel('Start again').selectOption('After a failure');
  await dialog.getByLabel('At most so many times').fill('2');
  await dialog.getByLabel('Name').fill('typed');
  await expectAccessible(page);
  await button(dialog, 'Start').click();
  await expect(dialog).toHaveCount(0);
  await expect(card(page, 'typed').locator('[data-state="ready"]')).toBeVisible();
  await expect(card(page, 'typed')).toContainText('Files of the test');
  const found = listServices(daemon).find(({ name }) => name === 'typed');
  expect(found).toBeDefined();
});

test('what cannot be started is told where it was typed', async ({ page, daemon }) => {
  startService(daemon, 'taken', fileServer(await freePort()));
  await open(page, daemon, '/services');
  await button(page, 'Start a service').click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Command').fill('sleep 100');
  await dialog.getByLabel('Directory').fill('/nowhere/at/all');
  await button(dialog, 'Start').click();
  await expect(dialog.getByRole('alert')).toContainText('/nowhere/at/all');
  await expect(dialog.getByLabel('Command')).toHaveValue('sleep 100');
});

test('a definition is kept, started by its name, and deleted', async ({ page, daemon }) => {
  const port = await freePort();
  await open(page, daemon, '/services');
  await button(page, 'Start a service').first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Command').fill(fileServer(port).join(' '));
  await dialog.getByLabel('Directory').fill(daemon.dir);
  await dialog.getByLabel('Name').fill('later');
  await button(dialog, 'Keep for later').click();
  const later = card(page, 'later');
  await expect(later.locator('[data-state="stopped"]')).toHaveText('Not started');
  await button(later, 'Start').click();
  await expect(later.locator('[data-state="ready"]')).toBeVisible();
  await button(later, 'Stop').click();
  await expect(later.locator('[data-state="stopped"]')).toHaveText('Stopped');
  await button(later, 'More of later').click();
  await page.getByRole('menuitem', { name: 'Delete the definition' }).click();
  await button(page.getByRole('dialog'), 'Delete the definition').click();
  await expect.poll(() => listServices(daemon).filter((it) => it.defined_in === 'api').length).toBe(0);
});

test('a definition that somebody else keeps or deletes is seen without an event', async ({
  page,
  daemon,
}) => {
  await page.clock.install();
  await open(page, daemon, '/services');
  await expect(button(page, 'Start a service').first()).toBeVisible();
  // The stream of events does not begin again, which would be another reason to read the list.
  await page.route('**/api/v1/events**', (route) => route.abort());
  const define = (method: string, content?: object) =>
    daemon.fetch('/api/v1/services/elsewhere', {
      method,
      headers: { 'Content-Type': 'application/json' },
      ...(content === undefined ? {} : { body: JSON.stringify(content) }),
    });
  const command = { argv: { program: 'sleep', args: ['1'] } };
  expect((await define('PUT', { command, cwd: daemon.dir })).ok).toBe(true);
  await page.clock.fastForward(30_000);
  await expect(card(page, 'elsewhere')).toBeVisible();
  expect((await define('DELETE')).ok).toBe(true);
  await page.clock.fastForward(30_000);
  await expect(card(page, 'elsewhere')).toHaveCount(0);
});

test('with the dismissed ones, more are shown than one page of the list has', async ({ page }) => {
  const daemon = new Daemon();
  await daemon.start();
  try {
    const body = JSON.stringify({ command: { argv: { program: 'sleep', args: ['1'] } }, cwd: daemon.dir });
    const headers = { 'Content-Type': 'application/json' };
    for (let n = 0; n < 203; n += 1) {
      const kept = await daemon.fetch(`/api/v1/services/kept-${n}`, { method: 'PUT', headers, body });
      expect(kept.ok).toBe(true);
    }
    await open(page, daemon, '/services?dismissed=1');
    await expect(page.getByRole('article')).toHaveCount(203);
  } finally {
    await daemon.close();
  }
});

test('that nobody answered is told until the daemon is back', async ({ page }) => {
  const daemon = new Daemon();
  await daemon.start();
  try {
    await startByRest(daemon, 'files', fileServer(await freePort()));
    await open(page, daemon, '/services');
    const files = card(page, 'files');
    await expect(files.locator('[data-state="ready"]')).toBeVisible();
    await daemon.kill();
    await button(files, 'Restart').click();
    await expect(files.getByRole('alert')).toContainText('The daemon does not answer');
    await daemon.start();
    await expect(files.getByRole('alert')).toHaveCount(0);
    await expect(files.locator('[data-state="ready"]')).toBeVisible();
  } finally {
    await daemon.close();
  }
});

test('services of a workspace start in their order, and those that depend on others stop first', {
  tag: '@full',
}, async ({ page, daemon }) => {
  const directory = await workspace(daemon, 'shop');
  startService(daemon, 'other', fileServer(await freePort()));
  await open(page, daemon, '/services');
  const field = page.getByLabel('Only the workspace of this directory');
  await field.fill(directory);
  await field.press('Enter');
  await expect(page).toHaveURL(/cwd=/);
  await expect(card(page, 'db').locator('[data-state="stopped"]')).toHaveText('Not started');
  await expect(card(page, 'other')).toHaveCount(0);
  await expect(page.getByText('1 more runs in another workspace.')).toBeVisible();
  await button(page, 'Start all').click();
  await expect(card(page, 'api').locator('[data-state="ready"]')).toBeVisible();
  await expect(card(page, 'api')).toContainText('Depends on db');

  await button(card(page, 'db'), 'Stop').click();
  const dialog = page.getByRole('dialog', { name: 'Stop db' });
  await expect(dialog).toContainText('api depend on db and are stopped first.');
  await button(dialog, 'Cancel').click();
  await expect(card(page, 'db').locator('[data-state="ready"]')).toBeVisible();
  await button(card(page, 'db'), 'Stop').click();
  await button(dialog, 'Stop 2 services').click();
  await expect(card(page, 'db').locator('[data-state="stopped"]')).toBeVisible();
  await expect(card(page, 'api').locator('[data-state="stopped"]')).toBeVisible();

  await button(page, 'Start all').click();
  await expect(card(page, 'api').locator('[data-state="ready"]')).toBeVisible();
  await button(page, 'Stop all').click();
  await expect(page.getByRole('dialog')).toContainText('This stops api, db, one after the other.');
  await button(page.getByRole('dialog'), 'Stop 2 services').click();
  await expect(card(page, 'db').locator('[data-state="stopped"]')).toBeVisible();
  await page.getByRole('link', { name: 'All workspaces' }).click();
  await expect(card(page, 'other')).toBeVisible();
});

test('filters are in the address', async ({ page, daemon }) => {
  startService(daemon, 'files', fileServer(await freePort()));
  startService(daemon, 'flaky', failingServer(await freePort(), 300));
  await open(page, daemon, '/services');
  await expect(card(page, 'flaky').locator('[data-state="failed"]')).toBeVisible();
  await page.getByText('Failed', { exact: false }).and(page.locator('label')).click();
  await expect(card(page, 'files')).toHaveCount(0);
  await expect(page).toHaveURL(/status=failed/);
  await page.goBack();
  await expect(card(page, 'files')).toBeVisible();
  await page.keyboard.press('/');
  await page.keyboard.type('nothing of that');
  await expect(page.getByText('No service matches the filters.')).toBeVisible();
  await button(page, 'Clear the filters').click();
  await expect(card(page, 'files')).toBeVisible();
});

test('a service has a page of its own, with what it uses over time', async ({ page, daemon }) => {
  const port = await freePort();
  startService(daemon, 'files', fileServer(port));
  await open(page, daemon, '/services');
  await card(page, 'files').getByRole('link', { name: 'files' }).click();
  await expect(page).toHaveURL(/\/services\/files$/);
  await expect(page).toHaveTitle('Ready – files – Ostler');
  await expect(page.getByRole('table')).toContainText(`127.0.0.1:${port}`);
  await expect(page.locator('.uplot')).toHaveCount(2);
  const memory = page.getByRole('slider', { name: 'Memory' });
  await expect(memory).toHaveAttribute('aria-valuetext', /Memory \d+ MB/);
  await memory.focus();
  await page.keyboard.press('Home');
  await expect(memory).toHaveAttribute('aria-valuenow', '0');
  await expect(page.getByRole('slider', { name: 'Processor' })).toHaveAttribute('aria-valuenow', '0');
  await page.getByText('1 hour').click();
  await expect(page).toHaveURL(/range=1h/);
  await expect(page.locator('.uplot')).toHaveCount(2);
  await expectAccessible(page);
  await expectNoOverflow(page);
});

test('a name without a service says so', async ({ page, daemon }) => {
  await open(page, daemon, '/services/nothing');
  await expect(page.getByText('There is no service nothing.')).toBeVisible();
});

test('it fits narrow windows and long texts, and has no barriers', async ({ page, daemon }) => {
  startService(
    daemon,
    'files',
    fileServer(await freePort()),
    '--description',
    'Files for everybody who wants some',
  );
  startService(daemon, 'flaky', failingServer(await freePort(), 300));
  await open(page, daemon, '/services');
  await expect(card(page, 'files').locator('[data-state="ready"]')).toBeVisible();
  await expect(card(page, 'flaky').locator('pre')).toBeVisible();
  await button(card(page, 'files'), 'Why…').click();
  await expectAccessible(page);
  await expectNoOverflow(page);
  await lengthenTexts(page);
  await expectNoOverflow(page);
});
