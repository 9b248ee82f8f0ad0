/** The page of one process: what is known of it, and what can be done with it. */
import type { Locator, Page } from '@playwright/test';
import { expectAccessible, expectNoOverflow, lengthenTexts } from './axe';
import { ended, start, statusOf } from './executions';
import { expect, open, test } from './fixture';

const headline = (page: Page): Locator => page.getByRole('heading', { level: 1 });
const section = (page: Page, name: string): Locator => page.getByRole('region', { name, exact: true });
const actions = (page: Page): Locator => page.getByRole('group', { name: 'What can be done' });
const parts = (page: Page): Locator => page.getByRole('navigation', { name: 'Parts of the page' });

/** The value beside a name. */
function fact(page: Page, name: string): Locator {
  return section(page, 'Process')
    .locator('div')
    .filter({ has: page.locator('dt', { hasText: new RegExp(`^${name}$`) }) })
    .locator('dd');
}

test('command, directory, states, times, exit code, owner and labels are told', async ({ page, daemon }) => {
  const { id, uuid } = await start(daemon, 'echo to the end; exit 7', {
    description: 'Exits with seven',
    labels: ['nightly', 'db'],
    session: 'builder',
  });
  await ended(daemon, id);
  await open(page, daemon, `/p/${id}`);
  await expect(headline(page)).toContainText('echo to the end; exit 7');
  await expect(page.getByRole('main')).toContainText('Failed');
  await expect(page.getByText('Exits with seven').first()).toBeVisible();
  await expect(page.getByRole('list', { name: 'Labels' }).first()).toContainText('nightly');
  await expect(fact(page, 'Exit')).toContainText('7');
  await expect(fact(page, 'Directory')).toHaveText(daemon.dir);
  for (const name of ['Started', 'Ended', 'Duration', 'PID', 'Session', 'Owner']) {
    await expect(fact(page, name)).toHaveText(/\S/);
  }
  await expect(fact(page, 'Started')).toHaveText(/\d\d:\d\d:\d\d\.\d{3}$/);
  await expect(fact(page, 'Labels')).toHaveText('nightly, db');
  await expect(fact(page, 'Id')).toHaveText(uuid);
  await expect(section(page, 'Isolation')).toContainText('Own process group');
});

test('variables are listed and found; a secret has no value', async ({ page, daemon }) => {
  const { id } = daemon.run(['sleep', '300'], '-e', 'COLOUR=vert', '-e', 'SERVICE_API_KEY=planted-canary-31');
  await open(page, daemon, `/p/${id}`);
  await parts(page).getByRole('link', { name: 'Environment' }).click();
  await expect(page).toHaveURL(/\/env$/);
  const environment = section(page, 'Environment');
  const row = (name: string) => environment.getByRole('listitem').filter({ hasText: name });
  await expect(row('COLOUR')).toContainText('vert');
  await expect(row('SERVICE_API_KEY')).toContainText('Secret');
  await expect(page.locator('html')).not.toContainText('planted-canary-31');
  await environment.getByRole('textbox', { name: 'Name or value' }).fill('colour');
  await expect(environment.getByRole('listitem')).toHaveCount(1);
});

test('events are listed as they happen, and lead to the output of their moment', async ({ page, daemon }) => {
  const { id } = await start(daemon, 'echo first; exec sleep 300');
  await open(page, daemon, `/p/${id}/events`);
  const events = section(page, 'Events').getByRole('listitem');
  await expect(events.filter({ hasText: /^.*Accepted/ })).toHaveCount(1);
  await expect(events.filter({ hasText: 'Started, PID' })).toHaveCount(1);
  daemon.ostler('stop', id);
  await expect(events.filter({ hasText: 'asked it to stop' })).toHaveCount(1);
  await expect(events.first()).toContainText('Ended');
  await events.filter({ hasText: 'Started, PID' }).getByRole('button').click();
  await expect(page.getByRole('log', { name: 'Output' })).toContainText('first');
});

test('it is paused, resumed, stopped, run again and cleaned', async ({ page, daemon }) => {
  const { id } = await start(daemon, 'echo here; exec sleep 300');
  await open(page, daemon, `/p/${id}`);
  const act = (name: string) => actions(page).getByRole('button', { name, exact: true }).first().click();
  await act('Pause');
  await expect.poll(() => statusOf(daemon, id)).toBe('paused');
  await act('Resume');
  await expect.poll(() => statusOf(daemon, id)).toBe('running');
  await act('Stop');
  await expect.poll(() => statusOf(daemon, id)).toBe('terminated');
  await expect(page.getByRole('main')).toContainText('Stopped');
  await act('Rerun');
  await expect(page).not.toHaveURL(new RegExp(`/p/${id}`));
  await expect(headline(page)).toContainText('echo here');
  const second = /\/p\/(\w+)/.exec(page.url())?.[1] ?? '';
  expect(await statusOf(daemon, second)).toBe('running');
  await page.goto(`${daemon.url}/p/${id}`);
  await act('Clean');
  await expect.poll(() => statusOf(daemon, id)).toBe('404');
  await expect(page.getByText('Its output was removed. This is what the history knows.')).toBeVisible();
});

test('one that does not hear a request to stop is killed after a warning', async ({ page, daemon }) => {
  const { id } = await start(daemon, 'trap "" TERM; echo deaf; while :; do sleep 0.1; done');
  await open(page, daemon, `/p/${id}`);
  await expect(page.getByRole('log', { name: 'Output' })).toContainText('deaf');
  await actions(page).getByRole('button', { name: 'More ways to stop' }).click();
  await page.getByRole('menuitem', { name: 'Force stop' }).click();
  const dialog = page.getByRole('dialog', { name: 'Kill this process?' });
  await expect(dialog).toContainText('without time to clean up');
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  expect(await statusOf(daemon, id)).toBe('running');
  await actions(page).getByRole('button', { name: 'More ways to stop' }).click();
  await page.getByRole('menuitem', { name: 'Force stop' }).click();
  await dialog.getByRole('button', { name: 'Force stop' }).click();
  await expect.poll(() => statusOf(daemon, id)).toBe('terminated');
});

test('what it uses is plotted, and its processes are a tree', async ({ page, daemon }) => {
  const { id } = await start(daemon, 'sleep 300 & sleep 301 & wait');
  await open(page, daemon, `/p/${id}/resources`);
  await expect(section(page, 'Resources').locator('canvas').first()).toBeVisible();
  await expect(section(page, 'Processes').getByRole('listitem').filter({ hasText: 'sleep' })).toHaveCount(2);
});

test('an id without a process says so', async ({ page, daemon }) => {
  await open(page, daemon, '/p/k3v9x0qa');
  await expect(page.getByRole('main')).toContainText('k3v9x0qa');
  await expect(
    page
      .getByRole('main')
      .getByRole('link', { name: /Processes/ })
      .first(),
  ).toBeVisible();
});

test('each part is accessible, in narrow windows and with longer texts', async ({ page, daemon }) => {
  const { id } = await start(daemon, 'seq 40; exec sleep 300', {
    description: 'Counts to forty',
    labels: ['count'],
  });
  for (const part of ['', '/env', '/events', '/resources']) {
    await open(page, daemon, `/p/${id}${part}`);
    await expect(headline(page)).toContainText('seq 40');
    await expectAccessible(page);
    await expectNoOverflow(page);
    await lengthenTexts(page);
    await expectNoOverflow(page);
  }
});
