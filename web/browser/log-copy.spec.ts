/** Selecting, copying, linking, saving and marking lines. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { expect, open, test } from './fixture';
import { clipboard, expectRead, expectSeen, log, seenLines } from './log-helpers';

test.use({ permissions: ['clipboard-read', 'clipboard-write'] });

const range = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => String(from + index)).join('\n');

/** Where a character of a line in view is. */
async function placeOf(page: Page, text: string, column: number): Promise<{ x: number; y: number }> {
  return log(page).evaluate(
    (scroller, [wanted, at]) => {
      const runs = [...scroller.querySelectorAll('.log-runs')].find((one) => one.textContent === wanted);
      const node = runs?.firstChild;
      if (!node) throw new Error('not in view');
      const place = document.createRange();
      place.setStart(node, at);
      place.setEnd(node, at);
      const box = place.getBoundingClientRect();
      return { x: box.x, y: box.y + box.height / 2 };
    },
    [text, column] as const,
  );
}

test('five thousand lines are selected by their numbers and copied byte for byte', { tag: '@full' }, async ({
  page,
  daemon,
}) => {
  const { id } = daemon.run(['seq', '1', '100000']);
  daemon.wait(id);
  await open(page, daemon, `/p/${id}?line=20001`);
  await expectSeen(page, '20001');
  await log(page).getByRole('link', { name: 'line 20,001' }).click();
  await page.goto(`${daemon.url}/p/${id}?line=20001-25000`);
  await expectSeen(page, '20001');
  await page.keyboard.press('y');
  await expect(page.getByText('5,000 lines copied')).toBeVisible();
  expect(await clipboard(page)).toBe(range(20_001, 25_000));
});

test('a click on a number marks the line, with Shift the range', async ({ page, daemon }) => {
  const { id } = daemon.run(['seq', '1', '1000']);
  daemon.wait(id);
  await open(page, daemon, `/p/${id}?line=500`);
  await expectSeen(page, '500');
  await log(page).getByRole('link', { name: 'line 495' }).click();
  await expect(page).toHaveURL(/line=495$/);
  await log(page)
    .getByRole('link', { name: 'line 499' })
    .click({ modifiers: ['Shift'] });
  await expect(page).toHaveURL(/line=495-499$/);
  await expect(log(page).locator('.log-row.chosen')).toHaveCount(5);
  await page.keyboard.press('Shift+Y');
  await expect(page.getByText('Link copied')).toBeVisible();
  expect(await clipboard(page)).toBe(`${daemon.url}/p/${id}?line=495-499`);
});

test('a selection that leaves the view is kept, and copied whole', { tag: '@full' }, async ({
  page,
  daemon,
}) => {
  const { id } = daemon.run(['seq', '1', '100000']);
  daemon.wait(id);
  await open(page, daemon, `/p/${id}?line=50000`);
  await expectSeen(page, '50000');
  const from = await placeOf(page, '50000', 2);
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  const to = await placeOf(page, '50005', 3);
  await page.mouse.move(to.x, to.y, { steps: 5 });
  await page.mouse.up();
  await page.keyboard.press('Control+c');
  await expect.poll(() => clipboard(page)).toBe('000\n50001\n50002\n50003\n50004\n500');
  // Away and back: it is still there.
  await page.keyboard.press('End');
  await expectSeen(page, '100000');
  expect(await page.evaluate(() => String(window.getSelection()))).toBe('');
  await page.evaluate(() => navigator.clipboard.writeText(''));
  await page.keyboard.press('y');
  await expect.poll(() => clipboard(page)).toBe('000\n50001\n50002\n50003\n50004\n500');
  await page.goBack().catch(() => null);
});

test('with Shift, a selection reaches over many pages', { tag: '@full' }, async ({ page, daemon }) => {
  const { id } = daemon.run(['seq', '1', '10000']);
  daemon.wait(id);
  await open(page, daemon, `/p/${id}?line=3000`);
  await expectSeen(page, '3000');
  const from = await placeOf(page, '3000', 0);
  await page.mouse.click(from.x, from.y);
  for (let round = 0; round < 8; round += 1) {
    await page.keyboard.press('PageDown');
    await expectRead(page);
  }
  const last = (await seenLines(page))[10];
  if (!last) throw new Error('no line');
  const to = await placeOf(page, last.text, last.text.length);
  await page.keyboard.down('Shift');
  await page.mouse.click(to.x, to.y);
  await page.keyboard.up('Shift');
  await page.keyboard.press('Control+c');
  await expect.poll(() => clipboard(page)).toBe(range(3_000, last.line));
});

test('everything is selected by Ctrl A', { tag: '@full' }, async ({ page, daemon }) => {
  const { id } = daemon.run(['seq', '1', '9000']);
  daemon.wait(id);
  await open(page, daemon, `/p/${id}`);
  await expectSeen(page, '9000');
  await log(page).focus();
  await page.keyboard.press('Control+a');
  await page.keyboard.press('Control+c');
  await expect(page.getByText('9,000 lines copied')).toBeVisible();
  expect(await clipboard(page)).toBe(range(1, 9_000));
});

test('files: what is shown, the text, the bytes, an asciicast', async ({ page, daemon }) => {
  const { id } = daemon.run(['printf', '%b', '\\033[31mred\\033[0m\\r\\nplain\\nred again\\n']);
  daemon.wait(id);
  await open(page, daemon, `/p/${id}?q=red&only=1`);
  await expectSeen(page, 'red again');
  const save = async (name: string, times = false) => {
    await log(page).focus();
    await page.keyboard.press('d');
    const dialog = page.getByRole('dialog', { name: 'Download' });
    if (times) await dialog.getByRole('checkbox').check();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      dialog.getByRole('button', { name, exact: true }).click(),
    ]);
    await expect(dialog).toBeHidden();
    return { name: download.suggestedFilename(), text: readFileSync(await download.path(), 'utf8') };
  };
  expect(await save('What is shown')).toEqual({ name: `${id}.log`, text: 'red\nred again\n' });
  expect((await save('Whole text')).text).toBe('red\nplain\nred again\n');
  expect((await save('Whole text', true)).text).toMatch(/^.*\d\d:\d\d:\d\d\.\d{3}.* red\n/);
  expect(await save('Raw bytes')).toEqual({
    name: `${id}.bin`,
    text: '\x1b[31mred\x1b[0m\r\nplain\nred again\n',
  });
  const cast = await save('Asciicast');
  expect(cast.name).toBe(`${id}.cast`);
  expect(JSON.parse(cast.text.split('\n')[0] ?? '')).toMatchObject({ version: 3 });
});

test('m sets a marker at the end of what there is', async ({ page, daemon }) => {
  const { id } = daemon.run('seq 1 5; while [ ! -e go ]; do sleep 0.1; done; seq 6 9; sleep 30');
  await open(page, daemon, `/p/${id}`);
  await expectSeen(page, '5');
  await page.keyboard.press('m');
  await expect(log(page).locator('.log-marker')).toHaveText(/^Marker \d\d:\d\d:\d\d$/);
  writeFileSync(join(daemon.dir, 'go'), '');
  await expectSeen(page, '9');
  const places = await log(page).evaluate((it) =>
    [...it.querySelectorAll('.log-row')].map(
      (row) => row.querySelector('.log-runs')?.textContent ?? row.className,
    ),
  );
  expect(places.slice(4, 7)).toEqual(['5', expect.stringContaining('log-marker'), '6']);
  daemon.ostler('stop', '--force', id);
});
