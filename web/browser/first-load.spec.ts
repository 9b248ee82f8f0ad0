/** What a first visit loads, and how soon the page is of use. */
import { startMany } from './executions';
import { expect, open, test } from './fixture';
import { note } from './measurement';

const FIRST_LOAD_BYTES_MAX = 400_000;
const ROWS = 40;

test('a first visit loads no more than 400 kB, and nothing moves when the rows are there', {
  tag: '@figures',
}, async ({ page, daemon }) => {
  await startMany(daemon, ROWS, ['first']);
  await open(page, daemon, '/settings');
  const session = await page.context().newCDPSession(page);
  await session.send('Network.enable');
  await session.send('Network.setCacheDisabled', { cacheDisabled: true });
  await page.addInitScript(() => {
    const shifts: number[] = [];
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) shifts.push((entry as unknown as { value: number }).value);
    }).observe({ type: 'layout-shift', buffered: true });
    const rowsAt = { time: 0 };
    new MutationObserver((_, observer) => {
      if (!document.querySelector('[data-row]')) return;
      rowsAt.time = performance.now();
      observer.disconnect();
    }).observe(document, { childList: true, subtree: true });
    Object.assign(window, { shifts, rowsAt });
  });
  const usable: number[] = [];
  for (let round = 0; round < 7; round += 1) {
    await page.goto(`${daemon.url}/processes`);
    await expect(page.locator('[data-row]').first()).toBeVisible();
    usable.push(await page.evaluate(() => (window as unknown as { rowsAt: { time: number } }).rowsAt.time));
  }
  const { files, painted, shifts } = await page.evaluate(() => ({
    files: performance
      .getEntries()
      .filter((entry) => entry.entryType === 'navigation' || entry.entryType === 'resource')
      .map((entry) => entry as PerformanceResourceTiming)
      .filter(({ name }) => !name.includes('/api/'))
      .map(({ name, encodedBodySize }) => ({ name, size: encodedBodySize })),
    painted: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0,
    shifts: (window as unknown as { shifts: number[] }).shifts.reduce((sum, one) => sum + one, 0),
  }));
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  const fonts = files.filter(({ name }) => name.endsWith('.woff2')).reduce((sum, { size }) => sum + size, 0);
  usable.sort((a, b) => a - b);
  note(
    'first load, compressed',
    `${Math.round(bytes / 1000)} kB, of it fonts ${Math.round(fonts / 1000)} kB`,
  );
  note('first paint', `${Math.round(painted)} ms`);
  note(
    'rows are there, median and worst of 7',
    `${Math.round(usable[3] ?? 0)} ms, ${Math.round(usable[6] ?? 0)} ms`,
  );
  note('layout shift', shifts.toFixed(4));
  expect(files.length).toBeGreaterThan(2);
  expect(bytes).toBeLessThanOrEqual(FIRST_LOAD_BYTES_MAX);
  expect(shifts).toBeLessThan(0.01);
});
