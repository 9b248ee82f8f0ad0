/** A log of a million lines. */
import type { Daemon } from './daemon';
import { expect, open, test } from './fixture';
import { expectRead, expectSeen, expectSequence, log, rowCount, seenLines } from './log-helpers';
import { note } from './measurement';

const LINES = 1_000_000;

let million: string | null = null;

/** An ended execution that printed a million lines, each its own number. */
function millionLines(daemon: Daemon): string {
  if (million === null) {
    million = daemon.run(['seq', '1', String(LINES)]).id;
    daemon.wait(million);
  }
  return million;
}

test.describe.configure({ mode: 'serial' });

test('it opens at its end, Home shows the first line, End the last one', { tag: '@figures' }, async ({
  page,
  daemon,
}) => {
  await open(page, daemon, `/p/${millionLines(daemon)}`);
  await expectSeen(page, String(LINES));
  expectSequence(await seenLines(page));
  await page.keyboard.press('Home');
  await expectSeen(page, '1');
  await expectRead(page);
  expectSequence(await seenLines(page));
  expect(await log(page).evaluate((it) => it.scrollTop)).toBe(0);
  const pressed = Date.now();
  await page.keyboard.press('End');
  await expectSeen(page, String(LINES));
  note('End to the last line', `${Date.now() - pressed} ms`);
  const rest = await log(page).evaluate((it) => it.scrollHeight - it.clientHeight - it.scrollTop);
  expect(rest).toBeLessThanOrEqual(1);
  expect(await rowCount(page)).toBeLessThan(100);
});

test('a thumb in the middle shows the line in the middle, and its number before its text', async ({
  page,
  daemon,
}) => {
  await open(page, daemon, `/p/${millionLines(daemon)}`);
  await expectSeen(page, String(LINES));
  // The chip is there while the thumb moves.
  const chip = await log(page).evaluate(async (it) => {
    it.scrollTop = (it.scrollHeight - it.clientHeight) / 2;
    for (let frame = 0; frame < 3; frame += 1) await new Promise((resolve) => requestAnimationFrame(resolve));
    return document.querySelector('.chip')?.textContent;
  });
  expect(chip).toMatch(/line (49|50)\d,\d{3}/);
  await expectRead(page);
  const lines = await seenLines(page);
  expectSequence(lines);
  expect(Math.abs((lines[0]?.line ?? 0) - LINES / 2)).toBeLessThan(LINES / 100);
});

test('a link to a line shows it in the middle, marked, and the end is not followed', {
  tag: '@figures',
}, async ({ page, daemon }) => {
  const id = millionLines(daemon);
  await open(page, daemon, '/processes');
  const begun = Date.now();
  await page.goto(`${daemon.url}/p/${id}?line=500000`);
  const found = await expectSeen(page, '500000');
  note('link to a line', `${Date.now() - begun} ms`);
  const height = await log(page).evaluate((it) => it.clientHeight);
  expect(Math.abs(found.top - height / 2)).toBeLessThan(40);
  await expect(page.locator('.log-row.chosen')).toHaveCount(1);
  await expect(page.locator('.log-row.chosen .log-runs')).toHaveText('500000');
});

test('scrolled back page by page, nothing is lost and nothing is there twice', { tag: '@full' }, async ({
  page,
  daemon,
}) => {
  await open(page, daemon, `/p/${millionLines(daemon)}?line=700000`);
  await expectSeen(page, '700000');
  const seen = new Set<number>();
  let lowest = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 15; round += 1) {
    await expectRead(page);
    const lines = await seenLines(page);
    expectSequence(lines);
    const last = lines.at(-1)?.line ?? 0;
    // Pages overlap or touch.
    if (round > 0) expect(last).toBeGreaterThanOrEqual(lowest - 1);
    for (const { line } of lines) seen.add(line);
    lowest = Math.min(lowest, lines[0]?.line ?? 0);
    await page.keyboard.press('PageUp');
  }
  expect(seen.size).toBe(Math.max(...seen) - Math.min(...seen) + 1);
  expect(await rowCount(page)).toBeLessThan(100);
});

test('the wheel moves by its pixels, in the middle of a million lines, too', { tag: '@full' }, async ({
  page,
  daemon,
}) => {
  await open(page, daemon, `/p/${millionLines(daemon)}?line=500000`);
  const before = await expectSeen(page, '500000');
  await log(page).hover();
  await page.mouse.wheel(0, -100);
  await expect.poll(async () => (await expectSeen(page, '500000')).top - before.top).toBe(100);
  await page.mouse.wheel(0, 240);
  await expect.poll(async () => (await expectSeen(page, '500000')).top - before.top).toBe(-140);
  await page.waitForTimeout(400);
  expect((await expectSeen(page, '500000')).top - before.top).toBe(-140);
});

test('l goes to a line by its number', async ({ page, daemon }) => {
  await open(page, daemon, `/p/${millionLines(daemon)}`);
  await expectSeen(page, String(LINES));
  await page.keyboard.press('l');
  await page.keyboard.type('123,456');
  await page.keyboard.press('Enter');
  await expectSeen(page, '123456');
  await expect(page).toHaveURL(/line=123456/);
});

test('wrapped, Home, End and the middle are the same', { tag: '@full' }, async ({ page, daemon }) => {
  await open(page, daemon, `/p/${millionLines(daemon)}?wrap=1`);
  await expectSeen(page, String(LINES));
  await page.keyboard.press('Home');
  await expectSeen(page, '1');
  await log(page).evaluate((it) => {
    it.scrollTop = (it.scrollHeight - it.clientHeight) / 2;
  });
  await expect
    .poll(async () => Math.abs(((await seenLines(page))[0]?.line ?? 0) - LINES / 2))
    .toBeLessThan(5_000);
  await expectRead(page);
  expectSequence(await seenLines(page));
  await page.keyboard.press('End');
  await expectSeen(page, String(LINES));
});
