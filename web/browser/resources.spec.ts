/** What executions use, measured of real ones. */
import type { Page } from '@playwright/test';
import { expectAccessible, expectNoOverflow, lengthenTexts } from './axe';
import { Daemon } from './daemon';
import { expect, open, testApart as test } from './fixture';

/** A program that holds so many megabytes, and works a third of the time. */
function busy(megabytes: number): string[] {
  return [
    'python3',
    '-c',
    `import time\nheld = bytearray(${megabytes}_000_000)\nwhile True:\n    end = time.time() + 0.3\n    while time.time() < end: pass\n    time.sleep(0.6)`,
  ];
}

test.afterEach(({ daemon }) => {
  const running = daemon.ostler('ps', '--quiet').split('\n').filter(Boolean);
  if (running.length > 0) daemon.ostler('stop', '--force', ...running);
  const ended = daemon.ostler('ps', '--all', '--quiet').split('\n').filter(Boolean);
  if (ended.length > 0) daemon.ostler('rm', ...ended);
});

const strip = (page: Page, name: string) => page.locator('figure').filter({ hasText: name });
const slider = (page: Page, name: string) => page.getByRole('slider', { name });

test('without executions, the page says so', async ({ page }) => {
  const daemon = new Daemon();
  await daemon.start();
  try {
    await open(page, daemon, '/resources');
    await expect(page.locator('.uplot')).toHaveCount(4);
    await expect(page.getByText('Nothing ran in this time.')).toBeVisible();
  } finally {
    await daemon.close();
  }
});

test('four plots show the totals, and share one cursor', async ({ page, daemon }) => {
  daemon.run(busy(80));
  daemon.run(busy(40));
  await open(page, daemon, '/resources');
  await expect(page.locator('.uplot')).toHaveCount(4);
  const memory = strip(page, 'Memory').locator('strong');
  await expect(memory).toHaveText(/^1[2-9]\d MB$/);
  await expect(strip(page, 'Processor').locator('strong')).toHaveText(/^[1-9]\d* %$/);
  const over = page.locator('.u-over');
  const box = await over.nth(2).boundingBox();
  if (!box) throw new Error('no plot');
  await page.mouse.move(box.x + box.width * 0.98, box.y + 20);
  for (const cursor of await page.locator('.u-cursor-x').all()) await expect(cursor).not.toHaveClass(/u-off/);
  await expect(page.locator('.bar .time')).toHaveText(/^\d\d:\d\d:\d\d$/);
  const told = await slider(page, 'Disk').getAttribute('aria-valuenow');
  await expect(slider(page, 'Network')).toHaveAttribute('aria-valuenow', told ?? '');
  await page.mouse.move(10, 10);
  await expect(page.locator('.bar .time')).toHaveText('Now');
  // The keys move it, too.
  await slider(page, 'Memory').focus();
  await page.keyboard.press('ArrowLeft');
  await expect(page.locator('.bar .time')).toHaveText(/^\d\d:\d\d:\d\d$/);
  await expect(page.locator('.u-cursor-x').first()).not.toHaveClass(/u-off/);
  await page.keyboard.press('Escape');
  await expect(page.locator('.bar .time')).toHaveText('Now');
});

test('those that used most are listed, and a click shows one in the plots with its limit', async ({
  page,
  daemon,
}) => {
  const { id } = daemon.run(busy(90), '--memory', '200M');
  daemon.run(['sleep', '60']);
  await open(page, daemon, '/resources?sort=memory');
  const rows = page.getByRole('row');
  // The order is that of the first samples, which may come before it holds its memory.
  await expect(rows.filter({ hasText: id })).toContainText(/\d\d\d MB/);
  const sort = page.getByRole('button', { name: 'Sort again' });
  if (await sort.isEnabled()) await sort.click();
  await expect(rows.nth(1)).toContainText(id);
  await page.getByRole('button', { name: 'python3 -c' }).click();
  await expect(page).toHaveURL(new RegExp(`id=${id}`));
  await expect(rows.nth(1).getByRole('button').first()).toHaveAttribute('aria-pressed', 'true');
  await expect(strip(page, 'Memory')).toContainText('limit 210 MB');
  await expect(strip(page, 'Memory').locator('.pinned')).toHaveText(/\d\d\d MB/);
  await page.reload();
  await expect(strip(page, 'Memory')).toContainText('limit 210 MB');
  await rows.nth(1).getByRole('button').first().click();
  await expect(page).not.toHaveURL(/id=/);
});

test('the order is kept until it is asked for again', async ({ page, daemon }) => {
  daemon.run(busy(20));
  await open(page, daemon, '/resources?sort=memory');
  const rows = page.getByRole('row');
  await expect(rows).toHaveCount(2);
  const { id } = daemon.run(busy(150));
  await expect(rows).toHaveCount(3);
  await expect(rows.nth(2)).toContainText(id);
  await page.getByRole('button', { name: 'Sort again' }).click();
  await expect(rows.nth(1)).toContainText(id);
  await expect(page.getByRole('button', { name: 'Sort again' })).toBeDisabled();
  await page.getByRole('button', { name: 'Processor' }).click();
  await expect(page).not.toHaveURL(/sort=/);
  await expect(page.getByRole('columnheader', { name: 'Processor' })).toHaveAttribute(
    'aria-sort',
    'descending',
  );
});

test('the range is in the address', async ({ page, daemon }) => {
  daemon.run(busy(20));
  await open(page, daemon, '/resources');
  await page.getByText('24 hours').click();
  await expect(page).toHaveURL(/range=24h/);
  await expect(page.locator('.uplot')).toHaveCount(4);
  await page.reload();
  await expect(page.getByRole('radio', { name: '24 hours' })).toBeChecked();
  await page.goBack();
  await expect(page.getByRole('radio', { name: '5 minutes' })).toBeChecked();
});

test('an alert is a notch that leads to its event', async ({ page, daemon }) => {
  const { id } = daemon.run(busy(120), '--alert', 'memory=50M');
  await open(page, daemon, '/resources');
  const notch = strip(page, 'Memory').getByRole('link', { name: /used \d+ MB of memory, above 52 MB/ });
  // Sampled every ten seconds where it had not allocated all of it at the first.
  const timeout = 30_000;
  await expect(notch).toHaveAttribute('href', new RegExp(`/p/${id}/events$`), { timeout });
  // Each new sample draws it anew.
  const width = async () => (await notch.boundingBox())?.width ?? 0;
  await expect.poll(width).toBeGreaterThanOrEqual(24);
  await notch.click();
  await expect(page).toHaveURL(new RegExp(`/p/${id}/events$`));
});

test('it fits narrow windows and long texts, and has no barriers', async ({ page, daemon }) => {
  daemon.run(busy(50), '--alert', 'memory=20M');
  await open(page, daemon, '/resources');
  await expect(page.getByRole('row')).not.toHaveCount(1);
  await expectAccessible(page);
  await expectNoOverflow(page);
  await lengthenTexts(page);
  await expectNoOverflow(page);
});
