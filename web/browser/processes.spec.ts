/** The list of processes. */
import type { Locator, Page } from '@playwright/test';
import { expectAccessible, expectNoOverflow, lengthenTexts } from './axe';
import { ended, post, type Started, start, statusOf } from './executions';
import { expect, open, test } from './fixture';

function rowOf(page: Page, { id }: { id: string }): Locator {
  return page.getByRole('row').filter({ hasText: id });
}

function rows(page: Page): Locator {
  return page.locator('[data-row]');
}

/** The short ids, from the top to the foot. */
async function order(page: Page): Promise<string[]> {
  const found = await rows(page).evaluateAll((elements) =>
    elements
      .sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)
      .map((element) => element.querySelector('.id')?.textContent ?? ''),
  );
  return found;
}

async function chooseAction(page: Page, row: Locator, name: string): Promise<void> {
  await row.getByRole('button', { name: /^More actions/ }).click();
  await page.getByRole('menuitem', { name, exact: true }).click();
}

test('a process appears, runs and ends while the list is open', async ({ page, daemon }) => {
  await start(daemon, 'true');
  await open(page, daemon, '/processes?label=live');
  await expect(page.getByText('No process matches label:live.')).toBeVisible();
  const one = await start(daemon, 'read x < gate; exit 3', {
    labels: ['live'],
    description: 'Waits at a gate',
  });
  const row = rowOf(page, one);
  // The gate is missing: it fails at once.
  await expect(row).toContainText('Failed');
  await expect(row).toContainText('Waits at a gate');
  const two = await start(daemon, 'sleep 1; exit 0', { labels: ['live'] });
  await expect(rowOf(page, two)).toContainText('Running');
  await expect(rowOf(page, two)).toContainText('Completed');
  await expect(rowOf(page, two).getByRole('gridcell', { name: '0', exact: true })).toBeVisible();
  await expect(page.getByRole('grid')).toHaveAttribute('aria-rowcount', '3');
});

test('filters are in the address, and the back button undoes them', async ({ page, daemon }) => {
  const label = 'filters';
  const good = await start(daemon, 'true # alpha', { labels: [label, 'good'], session: 'builder' });
  const bad = await start(daemon, 'exit 4 # beta', { labels: [label] });
  const long = await start(daemon, 'sleep 300 # gamma', { labels: [label] });
  await Promise.all([ended(daemon, good.id), ended(daemon, bad.id)]);
  await open(page, daemon, `/processes?label=${label}`);
  await expect(rows(page)).toHaveCount(3);
  await page.getByRole('radiogroup', { name: 'Status' }).getByText('Failed').click();
  await expect(page).toHaveURL(/status=failed/);
  await expect(rows(page)).toHaveCount(1);
  await expect(rowOf(page, bad)).toBeVisible();
  await page.goBack();
  await expect(rows(page)).toHaveCount(3);
  await page.keyboard.press('2');
  await expect(rows(page)).toHaveCount(1);
  await expect(rowOf(page, long)).toBeVisible();
  await page.keyboard.press('1');
  await page.keyboard.press('/');
  await page.keyboard.type('label:good alpha');
  await expect(rows(page)).toHaveCount(1);
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/label=filters&label=good/);
  await expect(page.getByRole('textbox', { name: 'Search processes' })).toHaveValue('alpha');
  await page.getByRole('button', { name: 'Remove the filter label: good' }).click();
  await expect(page).not.toHaveURL(/label=good/);
  await page.getByRole('button', { name: 'Filter by label, owner or project' }).click();
  await page
    .getByRole('dialog')
    .getByRole('button', { name: /^builder/ })
    .click();
  await expect(page).toHaveURL(/owner=builder/);
  await expect(rows(page)).toHaveCount(1);
  await page.reload();
  await expect(rowOf(page, good)).toBeVisible();
  await page.getByRole('textbox', { name: 'Search processes' }).fill('nowhere');
  await expect(
    page.getByText('No process matches label:filters, owner:builder, and “nowhere”.'),
  ).toBeVisible();
  await page.getByRole('button', { name: 'Clear the filter' }).click();
  await expect(page).toHaveURL(/\/processes$/);
});

test('columns sort, and say how', async ({ page, daemon }) => {
  const first = await start(daemon, 'true # b', { labels: ['sorted'] });
  const second = await start(daemon, 'true # a', { labels: ['sorted'] });
  const running = await start(daemon, 'sleep 300 # c', { labels: ['sorted'] });
  await Promise.all([ended(daemon, first.id), ended(daemon, second.id)]);
  await open(page, daemon, '/processes?label=sorted');
  await expect(rows(page)).toHaveCount(3);
  expect(await order(page)).toEqual([running.id, second.id, first.id]);
  const head = (name: string) => page.getByRole('columnheader', { name });
  await head('Command').getByRole('button').click();
  await expect(page).toHaveURL(/sort=command/);
  await expect(head('Command')).toHaveAttribute('aria-sort', 'ascending');
  await expect.poll(() => order(page)).toEqual([running.id, second.id, first.id]);
  await head('Command').getByRole('button').click();
  await expect(head('Command')).toHaveAttribute('aria-sort', 'descending');
  await expect.poll(() => order(page)).toEqual([first.id, second.id, running.id]);
  await head('Started').getByRole('button').click();
  await expect(page).toHaveURL(/sort=-started/);
  await page.getByRole('button', { name: 'Compact rows' }).click();
  await expect(page).toHaveURL(/density=compact/);
  const box = await rowOf(page, first).boundingBox();
  expect(box?.height).toBeLessThanOrEqual(32);
});

test('nothing moves under the pointer; what is new waits for a press', async ({ page, daemon }) => {
  const label = 'still';
  const old = await start(daemon, 'sleep 300', { labels: [label] });
  const ending = await start(daemon, 'sleep 300', { labels: [label] });
  await open(page, daemon, `/processes?label=${label}&status=running`);
  await expect(rows(page)).toHaveCount(2);
  await rowOf(page, old).hover();
  const before = await rowOf(page, old).boundingBox();
  await start(daemon, 'sleep 300', { labels: [label] });
  await start(daemon, 'sleep 300', { labels: [label] });
  const held = page.getByRole('columnheader', { name: /Command/ }).getByRole('button', { name: '2 new' });
  await expect(held).toBeVisible();
  daemon.ostler('stop', ending.id);
  // The one that ended no longer matches, and stays where it is.
  await expect(rowOf(page, ending)).toContainText('Terminated');
  expect(await rowOf(page, old).boundingBox()).toEqual(before);
  await expect(rows(page)).toHaveCount(2);
  await held.click();
  await expect(rows(page)).toHaveCount(3);
  await expect(rowOf(page, ending)).toHaveCount(0);
});

test('rows are moved through, selected and acted on by keys', async ({ page, daemon, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const started = [];
  for (let number = 0; number < 4; number += 1) {
    started.push(await start(daemon, `sleep 300 # key ${number}`, { labels: ['keys'] }));
  }
  const [d, c, b, a] = started as [Started, Started, Started, Started];
  await open(page, daemon, '/processes?label=keys');
  await expect(rows(page)).toHaveCount(4);
  await page.keyboard.press('j');
  await expect(rowOf(page, a)).toBeFocused();
  await page.keyboard.press('ArrowDown');
  await expect(rowOf(page, b)).toBeFocused();
  await page.keyboard.press('y');
  await expect(rowOf(page, b)).toContainText('Copied');
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(b.id);
  await page.keyboard.press('x');
  await page.keyboard.press('End');
  await expect(rowOf(page, d)).toBeFocused();
  await page.keyboard.press('Shift+X');
  await expect(page.getByText('3 selected')).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(page.getByText('3 selected')).toHaveCount(0);
  await page.keyboard.press('k');
  await expect(rowOf(page, c)).toBeFocused();
  await page.keyboard.press('s');
  const dialog = page.getByRole('dialog', { name: 'Stop 1 process?' });
  await expect(dialog.getByRole('button', { name: 'Cancel' })).toBeFocused();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await expect(rowOf(page, c)).toContainText('Terminated');
  await expect(rowOf(page, c)).toBeFocused();
  // Stopped ones keep their place, and the cursor stays.
  expect(await order(page)).toEqual([a.id, b.id, c.id, d.id]);
  await page.keyboard.press('c');
  await expect(rowOf(page, c)).toHaveCount(0);
  await expect(rowOf(page, d)).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(new RegExp(`/p/${d.id}$`));
});

test('the menu of a row stops, pauses, resumes, runs again, kills and cleans', async ({ page, daemon }) => {
  const one = await start(daemon, 'sleep 300 # menu', { labels: ['menu'] });
  await open(page, daemon, '/processes?label=menu');
  const row = rowOf(page, one);
  await chooseAction(page, row, 'Pause');
  await expect(row).toContainText('Paused');
  expect(await statusOf(daemon, one.id)).toBe('paused');
  await chooseAction(page, row, 'Resume');
  await expect(row).toContainText('Running');
  await row.getByRole('button', { name: /^Stop/ }).click();
  await expect(row).toContainText('Terminated');
  await chooseAction(page, row, 'Run again');
  await expect(row).toContainText(/Started again as \w+/);
  await page.getByRole('heading', { name: 'Processes' }).hover();
  await page.getByRole('textbox', { name: 'Search processes' }).focus();
  await expect(rows(page)).toHaveCount(2);
  const again = rows(page).filter({ hasText: 'Running' });
  await chooseAction(page, again, 'Force stop…');
  await page.getByRole('dialog', { name: 'Kill 1 process?' }).getByRole('button', { name: 'Kill' }).click();
  await expect(rows(page).filter({ hasText: 'Running' })).toHaveCount(0);
  await chooseAction(page, row, 'Clean');
  await expect(row).toHaveCount(0);
  expect(await statusOf(daemon, one.id)).toBe('404');
});

test('what does not end when it is asked to can be killed from its row', async ({ page, daemon }) => {
  const one = await start(daemon, 'trap "" TERM; while :; do sleep 1; done', { labels: ['stubborn'] });
  await open(page, daemon, '/processes?label=stubborn');
  const row = rowOf(page, one);
  await row.getByRole('button', { name: /^Stop/ }).click();
  await expect(row).toContainText('Stopping');
  await row.getByRole('button', { name: 'Force' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Kill' }).click();
  await expect(row).toContainText('Terminated');
  await expect(row).toContainText('SIGKILL');
});

test('several are stopped and cleaned, and each says what became of it', async ({ page, daemon }) => {
  const label = 'bulk';
  const done = [];
  for (let number = 0; number < 3; number += 1) done.push(await start(daemon, 'true', { labels: [label] }));
  await Promise.all(done.map(({ id }) => ended(daemon, id)));
  const running = [];
  for (let number = 0; number < 2; number += 1)
    running.push(await start(daemon, 'sleep 300', { labels: [label] }));
  await open(page, daemon, `/processes?label=${label}`);
  await expect(rows(page)).toHaveCount(5);
  await rows(page).nth(0).getByRole('checkbox').click();
  await rows(page)
    .nth(4)
    .getByRole('checkbox')
    .click({ modifiers: ['Shift'] });
  const bar = page.getByRole('toolbar');
  await expect(bar).toContainText('5 selected');
  await bar.getByRole('button', { name: 'Clean' }).click();
  const dialog = page.getByRole('dialog', { name: 'Clean 5 processes?' });
  await expect(dialog).toContainText('2 of them are running and stay.');
  await dialog.getByRole('button', { name: 'Clean 5' }).click();
  await expect(bar).toContainText('3 cleaned · 2 are running: stop them first');
  await expect(rows(page)).toHaveCount(2);
  for (const one of running) await expect(rowOf(page, one)).toContainText('Still running: stop it first');
  await bar.getByRole('button', { name: 'Stop', exact: true }).click();
  await page
    .getByRole('dialog', { name: 'Stop 2 processes?' })
    .getByRole('button', { name: 'Stop 2' })
    .click();
  await expect(bar).toContainText('2 stopped');
  await bar.getByRole('button', { name: 'Force stop' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Kill 2' }).click();
  await expect(bar).toContainText('2 had ended already');
  for (const one of running) await expect(rowOf(page, one)).toContainText('Has ended already');
  await bar.getByRole('button', { name: /Done/ }).click();
  await expect(page.getByRole('search')).toBeVisible();
});

test('a command is run from the page, and what is wrong with the form is said', async ({ page, daemon }) => {
  await open(page, daemon, '/processes');
  await page.getByRole('button', { name: 'Run a command' }).first().click();
  const dialog = page.getByRole('dialog', { name: 'Run a command' });
  await dialog.getByLabel('Directory').fill('somewhere');
  await dialog.getByLabel('Time limit').fill('soon');
  await dialog.getByRole('button', { name: 'Run', exact: true }).click();
  await expect(dialog).toContainText('Type a command');
  await expect(dialog).toContainText('The path of the directory, from / on');
  await expect(dialog.getByRole('textbox', { name: 'Command' })).toBeFocused();
  await dialog.getByRole('textbox', { name: 'Command' }).fill('printf "%s" "$PWD"; sleep 300');
  await dialog.getByLabel('Directory').fill('/no/such/directory');
  await dialog.getByLabel('Time limit').fill('5m');
  await dialog.getByLabel('Description').fill('From the page');
  await dialog.getByLabel('Labels').fill('dialog, page');
  await dialog.getByLabel('In a terminal').check();
  await dialog.getByRole('button', { name: 'Run', exact: true }).click();
  await expect(dialog.getByRole('alert')).toContainText('/no/such/directory');
  await dialog.getByLabel('Directory').fill(daemon.dir);
  await dialog.getByRole('textbox', { name: 'Command' }).press('Control+Enter');
  await expect(page).toHaveURL(/\/p\/\w+$/);
  const id = page.url().split('/').at(-1) ?? '';
  expect(daemon.info(id)).toMatchObject({
    description: 'From the page',
    labels: ['dialog', 'page'],
    timeout: 300,
    terminal: { cols: 120, rows: 32 },
    directory: daemon.dir,
  });
});

test('one that waits for an answer leads to its question', async ({ page, daemon }) => {
  const one = await start(daemon, 'printf "Continue? [y/N] "; read x', { labels: ['asks'], terminal: true });
  await open(page, daemon, '/processes?label=asks');
  const message = 'Continue?';
  await post(daemon, '/api/v1/interactions', { kind: 'confirmation', message, execution: one.id });
  const row = rowOf(page, one);
  await expect(row).toContainText('Waiting');
  await row.getByRole('link', { name: 'Answer' }).click();
  await expect(page).toHaveURL(/\/inbox\/.+/);
});

test('what others wrote is text and nothing else', async ({ page, daemon }) => {
  const evil = '<img src=x onerror="window.broken=1"><script>window.broken=1</script>';
  const one = await start(daemon, `true '${evil}'`, { labels: [evil], description: evil });
  await open(page, daemon, `/processes?q=${encodeURIComponent('onerror')}`);
  await expect(rowOf(page, one)).toContainText(evil);
  await rowOf(page, one).getByRole('button', { name: evil, exact: true }).click();
  await expect(page.getByRole('button', { name: `Remove the filter label: ${evil}` })).toBeVisible();
  expect(await page.evaluate(() => (window as unknown as { broken?: number }).broken)).toBeUndefined();
});

test('accessible, in narrow windows and with longer texts', async ({ page, daemon }) => {
  await start(daemon, 'exit 3', {
    labels: ['looks', 'second'],
    description: 'A description that is long enough to be cut',
  });
  await start(daemon, 'sleep 300 # a command that is much longer than a phone is wide, and goes on', {
    labels: ['looks'],
    description: 'Runs',
  });
  await open(page, daemon, '/processes?label=looks');
  await expect(rows(page)).toHaveCount(2);
  await expectAccessible(page);
  await expectNoOverflow(page);
  await page.setViewportSize({ width: 390, height: 844 });
  await expectAccessible(page);
  await page.setViewportSize({ width: 1440, height: 900 });
  await rows(page).first().getByRole('checkbox').check();
  await expectAccessible(page);
  await expectNoOverflow(page);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Run a command' }).click();
  await expectAccessible(page);
  await expectNoOverflow(page);
  await page.keyboard.press('Escape');
  await lengthenTexts(page);
  await expectNoOverflow(page);
});
