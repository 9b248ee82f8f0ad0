/** Following the end of output: as it comes, in floods, and over a restart of the daemon. */
import type { Page } from '@playwright/test';
import type { Daemon } from './daemon';
import { expect, open, test } from './fixture';
import { expectRead, expectSeen, expectSequence, log, rowCount, seenLines } from './log-helpers';
import { note } from './measurement';

const follow = (page: Page) => page.getByRole('button', { name: /^Follow/ });

/** Prints numbers, so many a second, for so many seconds. */
function counter(daemon: Daemon, rate: number, seconds: number): string {
  const script = `
import sys, time
rate, seconds, step = ${rate}, ${seconds}, 0.01
start, n = time.monotonic(), 0
while (now := time.monotonic() - start) < seconds:
    lines = []
    while n < now * rate:
        n += 1
        lines.append(f"{n}\\n")
    sys.stdout.write("".join(lines)); sys.stdout.flush()
    time.sleep(step)
`;
  return daemon.run(['python3', '-c', script]).id;
}

/** Follows the numbers of a counter, which are those of the lines. */
async function lastSeen(page: Page): Promise<number> {
  return (await seenLines(page)).at(-1)?.line ?? 0;
}

/** How long the page takes to see a key, in milliseconds. */
function keyDelay(page: Page): Promise<number> {
  return page.evaluate(
    () =>
      new Promise<number>((resolve) => {
        const begun = performance.now();
        // Behind everything that waits to be done.
        setTimeout(() => resolve(Math.round(performance.now() - begun)), 0);
      }),
  );
}

test('the end is followed; one notch up holds the view still and counts what is new', async ({
  page,
  daemon,
}) => {
  const id = counter(daemon, 200, 60);
  await open(page, daemon, `/p/${id}`);
  await expect.poll(() => lastSeen(page)).toBeGreaterThan(200);
  await expect(follow(page)).toHaveText('Following');
  await log(page).hover();
  await page.mouse.wheel(0, -100);
  await expect(follow(page)).toHaveText(/^Follow · [\d,]+ new$/);
  const held = await seenLines(page);
  for (let round = 0; round < 6; round += 1) {
    await page.waitForTimeout(250);
    expect(await seenLines(page)).toEqual(held);
  }
  await expect(follow(page)).toHaveText(/^Follow · \d{3,} new$/);
  await page.keyboard.press('f');
  await expect(follow(page)).toHaveText('Following');
  await expect.poll(() => lastSeen(page)).toBeGreaterThan((held.at(-1)?.line ?? 0) + 200);
  expectSequence(await seenLines(page));
  daemon.ostler('stop', '--force', id);
});

test('End and a scroll to the last line follow again; a selection and a marked line do not', {
  tag: '@full',
}, async ({ page, daemon }) => {
  const id = counter(daemon, 50, 60);
  await open(page, daemon, `/p/${id}`);
  await expect.poll(() => lastSeen(page)).toBeGreaterThan(100);
  await page.keyboard.press('Home');
  await expectSeen(page, '1');
  await expect(follow(page)).toHaveText(/new$/);
  await page.keyboard.press('End');
  await expect(follow(page)).toHaveText('Following');
  await log(page).hover();
  await page.mouse.wheel(0, -200);
  await expect(follow(page)).toHaveText(/new$|Follow$/);
  await page.mouse.wheel(0, 20_000);
  await expect(follow(page)).toHaveText('Following');
  await log(page).locator('.log-runs').nth(5).dblclick();
  await expect(follow(page)).not.toHaveText('Following');
  await page.keyboard.press('End');
  await expect(follow(page)).toHaveText('Following');
  await log(page).locator('.log-number').nth(5).click();
  await expect(follow(page)).not.toHaveText('Following');
  await expect(page).toHaveURL(/line=\d+/);
  daemon.ostler('stop', '--force', id);
});

test('fifty thousand lines a second: the page stays at hand, and nothing is lost on the way back', {
  tag: ['@figures', '@full'],
}, async ({ page, daemon }) => {
  test.setTimeout(180_000);
  const seconds = Number(process.env.FLOOD_SECONDS ?? 8);
  await open(page, daemon, '/processes');
  await page.evaluate(() => {
    const tasks: number[] = [];
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) tasks.push(Math.round(entry.duration));
    }).observe({ type: 'longtask' });
    Object.assign(window, { longTasks: tasks });
  });
  const id = counter(daemon, 50_000, seconds);
  // In the page that observes: a load would end that.
  await page.evaluate((path) => history.pushState(null, '', path), `/p/${id}`);
  await page.evaluate(() => dispatchEvent(new PopStateEvent('popstate')));
  await expect.poll(() => lastSeen(page), { timeout: 30_000 }).toBeGreaterThan(20_000);
  // Keys while lines arrive; nothing else is done that takes time.
  const typing: number[] = [];
  for (let round = 0; round < 6; round += 1) {
    typing.push(await keyDelay(page));
    await page.waitForTimeout(300);
  }
  const tasks = await page.evaluate(() => [...(window as unknown as { longTasks: number[] }).longTasks]);
  const memory: number[] = [];
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable');
  for (let round = 0; round < 6; round += 1) {
    await session.send('HeapProfiler.collectGarbage');
    const { metrics } = await session.send('Performance.getMetrics');
    memory.push((metrics.find(({ name }) => name === 'JSHeapUsedSize')?.value ?? 0) / 1e6);
    expect(await rowCount(page)).toBeLessThan(120);
    await page.waitForTimeout(300);
  }
  await expect(page.getByText(/^Exited 0 after/)).toBeVisible({ timeout: 60_000 });
  note('long tasks', `${tasks.length}, longest ${Math.max(0, ...tasks)} ms`);
  note('memory', `${memory.map((value) => value.toFixed(1)).join(' ')} MB`);
  note('delay of an event', `${typing.join(' ')} ms`);
  expect(Math.max(...memory) - Math.min(...memory)).toBeLessThan(30);
  // All of it is there: the last line, the first, and some on the way.
  const total = daemon.ostler('logs', '--tail', '1', id).trim().split(' ').at(-1) ?? '';
  await expectSeen(page, total);
  for (const share of [0.75, 0.5, 0.25, 0]) {
    await log(page).evaluate((it, part) => {
      it.scrollTop = (it.scrollHeight - it.clientHeight) * part;
    }, share);
    await page.waitForTimeout(300);
    await expectRead(page);
    expectSequence(await seenLines(page));
  }
});

test('a killed daemon comes back: no reload, no line twice or missing, the view unmoved', async ({
  page,
  daemon,
}) => {
  test.setTimeout(120_000);
  const id = counter(daemon, 100, 90);
  await open(page, daemon, `/p/${id}`);
  await expect.poll(() => lastSeen(page)).toBeGreaterThan(150);
  await page.evaluate(() => Object.assign(window, { isSamePage: true }));
  await log(page).hover();
  await page.mouse.wheel(0, -300);
  await expect(follow(page)).toHaveText(/new$/);
  await expectRead(page);
  const held = await seenLines(page);
  await daemon.kill();
  await expect(page.getByText('Lost the connection at', { exact: false })).toBeVisible({ timeout: 20_000 });
  await expect(page.getByRole('button', { name: 'Stop', exact: true })).toBeDisabled();
  expect(
    (await seenLines(page)).filter((line) => held.some((one) => one.line === line.line)).length,
  ).toBeGreaterThan(5);
  await daemon.start();
  await expect(page.getByText('Connected again', { exact: false })).toBeVisible({ timeout: 30_000 });
  await expect(page.getByText('Connected again', { exact: false })).toBeHidden({ timeout: 10_000 });
  // Each line where it was; a strip above the log that is gone may leave room for one more.
  expect(await seenLines(page)).toEqual(expect.arrayContaining(held));
  await page.keyboard.press('End');
  await expect(follow(page)).toHaveText('Following');
  const last = held.at(-1)?.line ?? 0;
  await expect.poll(() => lastSeen(page), { timeout: 30_000 }).toBeGreaterThan(last + 300);
  // Every line between, in order.
  await page.keyboard.press('f');
  await expect(follow(page)).not.toHaveText('Following');
  await expectRead(page);
  for (
    let at = (await seenLines(page))[0]?.line ?? 0;
    at > last;
    at = (await seenLines(page))[0]?.line ?? 0
  ) {
    await expectRead(page);
    expectSequence(await seenLines(page));
    await page.keyboard.press('PageUp');
    await expect.poll(async () => (await seenLines(page))[0]?.line ?? 0).toBeLessThan(at);
  }
  expect(await page.evaluate(() => 'isSamePage' in window)).toBe(true);
  daemon.ostler('stop', '--force', id);
});

test('a silent process says so, one that printed nothing, too', async ({ page, daemon }) => {
  const silent = daemon.run(['sleep', '50']).id;
  await open(page, daemon, `/p/${silent}`);
  await expect(page.getByText(/^No output yet, \d+ s\.$/)).toBeVisible();
  daemon.ostler('stop', '--force', silent);
  await expect(page.getByText('It printed nothing.')).toBeVisible();
  await expect(page.getByText(/^Stopped after/)).toBeVisible();
});

test('cleared output is told, and the rest has its numbers', async ({ page, daemon }) => {
  const id = counter(daemon, 50, 40);
  await open(page, daemon, `/p/${id}`);
  await expect.poll(() => lastSeen(page)).toBeGreaterThan(50);
  const answer = await daemon.fetch(`/api/v1/executions/${id}/output`, { method: 'DELETE' });
  expect(answer.ok).toBe(true);
  await expect.poll(() => lastSeen(page)).toBeGreaterThan(150);
  await page.keyboard.press('Home');
  await expect(log(page).locator('.log-gap')).toHaveText(/ B not kept \(lines 1–[\d,]+\)$/);
  await expectRead(page);
  expectSequence(await seenLines(page));
  daemon.ostler('stop', '--force', id);
});
