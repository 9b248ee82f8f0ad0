/** The history of executions. */
import type { Locator, Page } from '@playwright/test';
import { expectAccessible, expectNoOverflow, lengthenTexts } from './axe';
import { ended, post, start } from './executions';
import { expect, open, test } from './fixture';

function rows(page: Page): Locator {
  return page.locator('[data-entry]');
}

function rowOf(page: Page, { id }: { id: string }): Locator {
  return rows(page).filter({ hasText: id });
}

test('what has run is found again, also when it was cleaned', async ({ page, daemon }) => {
  const one = await start(daemon, 'echo past; exit 4', { labels: ['past'], session: 'historian' });
  await ended(daemon, one.id);
  await open(page, daemon, '/history?label=past');
  const row = rowOf(page, one);
  await expect(row).toContainText('Failed');
  await expect(row).toContainText('historian');
  await expect(row.getByRole('cell', { name: '4', exact: true })).toBeVisible();
  await post(daemon, '/api/process/clean_selected', { pids: [one.id] });
  await page.reload();
  await row.getByRole('button', { name: /^Show the details/ }).click();
  await expect(page).toHaveURL(new RegExp(`id=${one.id}`));
  await expect(page.getByText(/^Its output was removed/)).toBeVisible();
  await expect(page.getByRole('definition').filter({ hasText: '01' }).first()).toBeVisible();
  await page.goBack();
  await expect(page.getByText(/^Its output was removed/)).toHaveCount(0);
  await row.getByRole('link').click();
  await expect(page).toHaveURL(new RegExp(`/p/${one.id}`));
});

test('filters narrow it, and are in the address', async ({ page, daemon }) => {
  const good = await start(daemon, 'true # narrow-good', { labels: ['narrow', 'good'], session: 'narrower' });
  const bad = await start(daemon, 'exit 3 # narrow-bad', { labels: ['narrow'] });
  await Promise.all([ended(daemon, good.id), ended(daemon, bad.id)]);
  await open(page, daemon, '/history');
  await page.keyboard.press('/');
  await page.keyboard.type('narrow- label:narrow');
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/q=narrow-&label=narrow|label=narrow&q=narrow-/);
  await expect(rows(page)).toHaveCount(2);
  await page.getByRole('radiogroup', { name: 'Status' }).getByText('Failed').click();
  await expect(page).toHaveURL(/status=failed/);
  await expect(rows(page)).toHaveCount(1);
  await expect(rowOf(page, bad)).toBeVisible();
  await page.getByRole('radiogroup', { name: 'Status' }).getByText('All', { exact: true }).click();
  await rowOf(page, good).getByRole('button', { name: 'narrower' }).click();
  await expect(page).toHaveURL(/session=narrower/);
  await expect(rows(page)).toHaveCount(1);
  await page.getByRole('button', { name: 'Remove the filter session: narrower' }).click();
  await expect(rows(page)).toHaveCount(2);
  await page.getByLabel('To', { exact: true }).fill('2020-01-01');
  await expect(page.getByText('Nothing in the history matches the filter.')).toBeVisible();
  await page.getByLabel('To', { exact: true }).fill('');
  await page.getByLabel('From', { exact: true }).fill('2020-01-01');
  await expect(rows(page)).toHaveCount(2);
  await page.getByLabel('From', { exact: true }).fill('2999-01-01');
  await page.getByRole('button', { name: 'Clear the filter' }).click();
  await expect(page).toHaveURL(/\/history$/);
});

test('what is shown as running is told to have ended when it has', async ({ page, daemon }) => {
  const first = await start(daemon, 'sleep 300', { labels: ['ends'] });
  const second = await start(daemon, 'sleep 300', { labels: ['ends'] });
  await open(page, daemon, '/history?label=ends');
  await expect(rowOf(page, first)).toContainText('Running');
  await expect(rowOf(page, second)).toContainText('Running');
  await post(daemon, `/api/v1/executions/${first.id}/stop`, { force: true });
  await expect(rowOf(page, first)).not.toContainText('Running');
  await expect(rowOf(page, second)).toContainText('Running');
});

test('pages lead back in time and forth', { tag: '@full' }, async ({ page, daemon }) => {
  const label = 'paged';
  for (let round = 0; round < 13; round += 1) {
    await Promise.all(
      Array.from({ length: 8 }, (_, index) => start(daemon, `true # ${round}.${index}`, { labels: [label] })),
    );
  }
  await open(page, daemon, `/history?label=${label}`);
  await expect(rows(page)).toHaveCount(100);
  const first = await rows(page).first().getAttribute('data-entry');
  await page.getByRole('button', { name: 'Older' }).click();
  await expect(page).toHaveURL(/before=\d+/);
  await expect(rows(page)).toHaveCount(4);
  await expect(page.getByRole('button', { name: 'Older' })).toBeDisabled();
  await page.getByRole('button', { name: 'Newer' }).click();
  await expect(rows(page)).toHaveCount(100);
  expect(await rows(page).first().getAttribute('data-entry')).toBe(first);
});

test('from a page that was opened by its address, the way leads to the newest', async ({ page, daemon }) => {
  const one = await start(daemon, 'true', { labels: ['linked'] });
  await ended(daemon, one.id);
  await open(page, daemon, '/history?label=linked&before=999999999');
  await expect(rowOf(page, one)).toBeVisible();
  await expect(page.getByRole('button', { name: 'Newer' })).toHaveCount(0);
  await page.getByRole('button', { name: 'Newest' }).click();
  await expect(page).toHaveURL(/\/history\?label=linked$/);
  // The last day that an address can name.
  const answer = page.waitForResponse(/\/api\/v1\/history\?/);
  await page.getByLabel('To', { exact: true }).fill('9999-12-31');
  expect((await answer).status()).toBe(200);
  await expect(page).toHaveURL(/to=9999-12-31/);
  await expect(rowOf(page, one)).toBeVisible();
});

test('how a command usually ends is told', async ({ page, daemon }) => {
  for (let run = 0; run < 6; run += 1) {
    const { id } = await start(daemon, `exit ${run === 3 ? 1 : 0} # usual`, { labels: ['usual'] });
    await ended(daemon, id);
  }
  await open(page, daemon, '/history?label=usual');
  await expect(rows(page)).toHaveCount(6);
  await rows(page)
    .first()
    .getByRole('button', { name: /^Show the details/ })
    .click();
  await expect(page.getByRole('heading', { name: 'The run' })).toBeVisible();
  await expect(page.getByRole('heading', { name: 'How this command usually ends' })).toBeVisible();
});

test('accessible, in narrow windows and with longer texts', async ({ page, daemon }) => {
  const { id } = await start(daemon, 'exit 2 # a command that is longer than any phone is wide', {
    labels: ['looks-past', 'second'],
  });
  await ended(daemon, id);
  await open(page, daemon, `/history?label=looks-past&id=${id}`);
  await expect(page.getByRole('heading', { name: 'The run' })).toBeVisible();
  await expectAccessible(page);
  await expectNoOverflow(page);
  await page.setViewportSize({ width: 390, height: 844 });
  await expectAccessible(page);
  await lengthenTexts(page);
  await expectNoOverflow(page);
});
