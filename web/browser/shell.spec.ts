/** The frame of every page. */
import { expect, open, test } from './fixture';

test('the rail leads to each page, and the back button back', async ({ signedIn: page }) => {
  for (const name of [
    'Terminals',
    'Services',
    'Interactions',
    'Templates',
    'History',
    'Audit',
    'Resources',
    'Settings',
  ]) {
    await page.getByRole('navigation').first().getByRole('link', { name }).click();
    await expect(page).toHaveTitle(new RegExp(`${name} – Ostler$`));
  }
  await page.goBack();
  await expect(page).toHaveTitle('Resources – Ostler');
});

test('keys lead to pages, and their table is shown', async ({ signedIn: page }) => {
  await page.keyboard.press('g');
  await page.keyboard.press('h');
  await expect(page).toHaveTitle('History – Ostler');
  await page.keyboard.press('?');
  await expect(page.getByRole('dialog', { name: 'Keys' })).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(page.getByRole('dialog')).toHaveCount(0);
});

test('a jump finds a process by a word of its command', async ({ page, daemon }) => {
  const { id } = daemon.run(['sleep', '321.5']);
  await open(page, daemon, '/audit');
  await page.keyboard.press('Control+k');
  await page.keyboard.type('321.5');
  await expect(page.getByRole('option', { name: id })).toBeVisible();
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(new RegExp(`/p/${id}$`));
});

test('an address without a page says so', async ({ page, daemon }) => {
  await open(page, daemon, '/processes');
  await page.goto(`${daemon.url}/p/a/b/c`);
  await expect(page.getByText('There is no page at this address.')).toBeVisible();
});
