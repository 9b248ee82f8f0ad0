/** Finding things in the output: matches, errors, times, only some lines. */
import type { Page } from '@playwright/test';
import { expect, open, test } from './fixture';
import { expectRead, expectSeen, log, seenLines } from './log-helpers';

const field = (page: Page) => page.getByRole('textbox', { name: 'Search the output' });
const count = (page: Page) => page.locator('.search .count');

test('the count of matches is true, and n goes from one to the next, over the end', async ({
  page,
  daemon,
}) => {
  const { id } = daemon.run(['seq', '1', '20000']);
  daemon.wait(id);
  // What grep counts.
  const wanted = Array.from({ length: 20_000 }, (_, index) => String(index + 1)).filter((text) =>
    text.includes('77'),
  );
  await open(page, daemon, `/p/${id}?line=1`);
  await expectSeen(page, '1');
  await page.keyboard.press('/');
  await page.keyboard.type('77');
  await expect(count(page)).toHaveText(`1 of ${wanted.length}`);
  await expectSeen(page, '77');
  await expect(page).toHaveURL(/q=77/);
  await expect(log(page).locator('.log-runs.current mark')).toHaveText('77');
  await page.keyboard.press('Enter');
  await expect(count(page)).toHaveText(`2 of ${wanted.length}`);
  await expectSeen(page, '177');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  await expect(field(page)).toHaveValue('');
  // Above ten thousand.
  await page.keyboard.press('/');
  await page.keyboard.type('1');
  const ones = Array.from({ length: 20_000 }, (_, index) => String(index + 1)).filter((text) =>
    text.includes('1'),
  );
  await expect(count(page)).toHaveText(new RegExp(`of ${ones.length.toLocaleString('en')}$`));
  await page.keyboard.press('Shift+Enter');
  await expect(count(page)).not.toHaveText(/^1 of/);
});

test('n and N move between matches, also back over the beginning', async ({ page, daemon }) => {
  const { id } = daemon.run(['seq', '1', '3000']);
  daemon.wait(id);
  await open(page, daemon, `/p/${id}?q=555&line=1`);
  await expect(count(page)).toHaveText('3 lines');
  await log(page).focus();
  for (const [key, text] of [
    ['n', '555'],
    ['n', '1555'],
    ['n', '2555'],
    ['n', '555'],
    ['Shift+N', '2555'],
    ['Shift+N', '1555'],
  ] as const) {
    await page.keyboard.press(key);
    await expect(log(page).locator('.log-runs.current')).toHaveText(text);
  }
  await expect(count(page)).toHaveText('2 of 3');
});

test('an expression is searched for; a wrong one is marked where it is wrong', async ({ page, daemon }) => {
  const { id } = daemon.run(['printf', '%s\n', 'alpha 1', 'beta 22', 'Gamma 333', 'delta x']);
  daemon.wait(id);
  await open(page, daemon, `/p/${id}`);
  await page.getByRole('button', { name: 'Regular expression' }).click();
  await field(page).fill('^[a-z]+ \\d+$');
  await expect(count(page)).toHaveText(/of 3$/);
  await expect(log(page).locator('mark')).toHaveText(['alpha 1', 'beta 22', 'Gamma 333']);
  await page.getByRole('button', { name: 'Match case' }).click();
  await expect(count(page)).toHaveText(/of 2$|^2 lines$/);
  await expect(log(page).locator('mark')).toHaveText(['alpha 1', 'beta 22']);
  await expect(page).toHaveURL(/mode=regex.*case=1|case=1.*mode=regex/);
  await field(page).fill('al(pha');
  const problem = page.getByRole('toolbar').getByRole('alert');
  await expect(problem).toContainText('unclosed group');
  await expect(problem.locator('mark')).toHaveText('(');
  await expect(field(page)).toHaveAttribute('aria-invalid', 'true');
  await field(page).fill('al(pha)');
  await expect(problem).toHaveCount(0);
  await expect(count(page)).toHaveText(/^1 of 1$|^1 line$/);
});

test('an expression that never ends does not stop the page', async ({ page, daemon }) => {
  const { id } = daemon.run(['printf', '%s\n', `${'a'.repeat(60)}!`, 'end']);
  daemon.wait(id);
  await open(page, daemon, `/p/${id}?q=${encodeURIComponent('(a+)+$')}&mode=regex`);
  await expectSeen(page, 'end');
  await expect(count(page)).toHaveText(/0 lines/);
  const begun = Date.now();
  await page.keyboard.press('w');
  await expect(page.getByRole('button', { name: 'Wrap lines' })).toHaveAttribute('aria-pressed', 'true');
  expect(Date.now() - begun).toBeLessThan(3_000);
});

test('only matching lines keep their numbers; a link to them shows the same', async ({ page, daemon }) => {
  const { id } = daemon.run(['seq', '1', '100000']);
  daemon.wait(id);
  await open(page, daemon, `/p/${id}?q=999`);
  await expect(count(page)).toHaveText('280 lines');
  await page.getByRole('button', { name: 'Only matching lines' }).click();
  await expect(page).toHaveURL(/only=1/);
  await expect.poll(async () => (await seenLines(page)).every(({ text }) => text.includes('999'))).toBe(true);
  await page.keyboard.press('Home');
  await expectSeen(page, '999');
  expect((await seenLines(page)).slice(0, 3).map(({ line, text }) => [line, text])).toEqual([
    [999, '999'],
    [1999, '1999'],
    [2999, '2999'],
  ]);
  await page.keyboard.press('End');
  await expectSeen(page, '99999');
  await page.reload();
  await expectSeen(page, '99999');
  // All of them, back from the end, none twice.
  const seen = new Set<string>();
  for (let round = 0; round < 30 && !seen.has('999'); round += 1) {
    await expectRead(page);
    for (const { text } of await seenLines(page)) seen.add(text);
    await page.keyboard.press('PageUp');
  }
  expect(seen.size).toBe(280);
});

test('a failed command opens at its first error; e goes on, the line is in the address', async ({
  page,
  daemon,
}) => {
  const { id } = daemon.run(
    'seq 1 500; sleep 0.2; echo "error[E0308]: mismatched types" >&2; sleep 0.2; seq 501 900; echo "warning: unused variable"; sleep 0.2; echo "error: could not compile" >&2; sleep 0.2; seq 901 1400; exit 101',
  );
  daemon.wait(id);
  await open(page, daemon, `/p/${id}`);
  await expectSeen(page, 'error[E0308]: mismatched types');
  await expect(log(page).locator('.log-row.failure')).toHaveText(/E0308/);
  await expect(page.getByRole('button', { name: '2 errors' })).toBeVisible();
  await page.keyboard.press('e');
  await expect(page).toHaveURL(/line=501/);
  await page.keyboard.press('e');
  await expectSeen(page, 'error: could not compile');
  await expect(page).toHaveURL(/line=903/);
  await expect(log(page).locator('.log-row.chosen')).toHaveText(/could not compile/);
  await page.keyboard.press('e');
  await expect(page).toHaveURL(/line=501/);
  await page.keyboard.press('Shift+E');
  await expect(page).toHaveURL(/line=903/);
  // A warning is none.
  await expect(log(page).locator('.log-row.failure').filter({ hasText: 'warning' })).toHaveCount(0);
});

test('without an error, e says so', async ({ page, daemon }) => {
  const { id } = daemon.run(['seq', '1', '50']);
  daemon.wait(id);
  await open(page, daemon, `/p/${id}`);
  await expectSeen(page, '50');
  await page.keyboard.press('e');
  await expect(page.getByText('No line states an error.')).toBeVisible();
});

test('a time range shows the lines of that time', async ({ page, daemon }) => {
  const { id } = daemon.run('echo one; sleep 1.2; echo two; sleep 1.2; echo three');
  daemon.wait(id);
  await open(page, daemon, `/p/${id}`);
  await expectSeen(page, 'three');
  const times = await log(page).locator('.log-time').allTextContents();
  const second = (at: number) => times[at]?.slice(0, 12) ?? '';
  await page.getByRole('button', { name: /^Time range/ }).click();
  await page.getByLabel('From').fill(second(1));
  await page.getByLabel('Until').fill(second(2));
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  await expect.poll(async () => (await seenLines(page)).map(({ text }) => text)).toEqual(['two']);
  await expect(page).toHaveURL(/since=.*until=/);
  await log(page).focus();
  await page.keyboard.press('0');
  await expect.poll(async () => (await seenLines(page)).length).toBe(3);
  await page.keyboard.press('5');
  await expect(page).toHaveURL(/since=60m/);
  await expect.poll(async () => (await seenLines(page)).length).toBe(3);
  await page.getByRole('button', { name: /^Time range/ }).click();
  await page.getByLabel('From').fill('nonsense');
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  await page.getByRole('button', { name: /^Time range/ }).click();
  await expect(page.getByText('“nonsense” is no time.')).toBeVisible();
});

test('what a filter leaves nothing of says so', async ({ page, daemon }) => {
  const { id } = daemon.run(['seq', '1', '50']);
  daemon.wait(id);
  await open(page, daemon, `/p/${id}?stream=err`);
  await expect(page.getByText('No line passes this filter.')).toBeVisible();
  await page.getByRole('button', { name: 'Clear filters' }).click();
  await expectSeen(page, '50');
});

test('the strip shows when errors were printed, and leads there', async ({ page, daemon }) => {
  const { id } = daemon.run('seq 1 300; sleep 1; echo "Error: it broke" >&2; sleep 1; seq 301 600; exit 1');
  daemon.wait(id);
  await open(page, daemon, `/p/${id}?line=1`);
  const strip = page.getByRole('slider', { name: 'Output over time' });
  await expect(strip.locator('rect.error')).toHaveCount(1);
  const box = await strip.boundingBox();
  if (!box) throw new Error('no strip');
  await page.mouse.click(box.x + box.width * 0.52, box.y + 20);
  await expect.poll(async () => (await seenLines(page)).some(({ line }) => line > 300)).toBe(true);
  await strip.press('End');
  await expectSeen(page, '600');
});
