/** Settings of the browser, tokens, the policy, and what is told of the daemon. */
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { expectAccessible, expectNoOverflow, lengthenTexts } from './axe';
import { Daemon } from './daemon';
import { expect, open, test } from './fixture';

/** Passes requests for tokens on to the daemon's socket, where it answers them. */
async function overSocket(page: Page, daemon: Daemon): Promise<void> {
  const socketPath = join(daemon.dir, 'run', 'ostler', 'daemon.sock');
  await page.route('**/api/v1/tokens**', async (route) => {
    const { pathname } = new URL(route.request().url());
    const answer = await new Promise<{ status: number; body: string }>((resolve, reject) => {
      const headers = { 'Content-Type': 'application/json' };
      const sent = httpRequest(
        { socketPath, path: pathname, method: route.request().method(), headers },
        (got) => {
          let body = '';
          got.on('data', (chunk) => (body += chunk));
          got.on('end', () => resolve({ status: got.statusCode ?? 0, body }));
        },
      );
      sent.on('error', reject);
      sent.end(route.request().postData() ?? undefined);
    });
    await route.fulfill({ ...answer, contentType: 'application/json' });
  });
}

test('the language is chosen by its own name', async ({ page, daemon }) => {
  await open(page, daemon, '/settings');
  const languages = page.getByLabel('Language');
  await expect(languages.locator('option')).toHaveCount(19);
  for (const name of ['Català', 'Deutsch', 'हिन्दी', '日本語', 'Português (Brasil)', '繁體中文']) {
    await expect(languages.locator('option', { hasText: name }).last()).toBeAttached();
  }
  await languages.selectOption('de');
  await expect(page.locator('html')).toHaveAttribute('lang', 'de');
  await page.reload();
  await expect(page.locator('html')).toHaveAttribute('lang', 'de');
  await page.locator('select').first().selectOption('');
  await expect(page.locator('html')).toHaveAttribute('lang', 'en');
});

test('theme, density, time and keys are chosen and kept', async ({ page, daemon }) => {
  await open(page, daemon, '/settings');
  await page.getByText('Dark', { exact: true }).click();
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
  await page.getByText('UTC', { exact: true }).click();
  await page.getByText('Compact', { exact: true }).click();
  await page.getByLabel('Single letters are keys').uncheck();
  await page.reload();
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
  await expect(page.getByRole('radio', { name: 'Compact' })).toBeChecked();
  await expect(page.getByRole('radio', { name: 'UTC' })).toBeChecked();
  await page.keyboard.press('g');
  await page.keyboard.press('h');
  await expect(page).toHaveTitle('Appearance – Settings – Ostler');
  await page.getByLabel('Single letters are keys').check();
  await page.getByRole('heading', { name: 'Settings' }).click();
  await page.keyboard.press('g');
  await page.keyboard.press('h');
  await expect(page).toHaveTitle('History – Ostler');
});

test('sizes of output and terminals are chosen', async ({ page, daemon }) => {
  await open(page, daemon, '/settings/output');
  const size = page.getByRole('slider', { name: 'Size of output' });
  await size.focus();
  await page.keyboard.press('End');
  await expect(size).toHaveAttribute('aria-valuetext', '18 pixels');
  await expect(page.locator('.sample').first()).toHaveCSS('font-size', '18px');
  await page.getByLabel('Announce new lines').check();
  await page.getByLabel('Wrap long ones').check();
  await page.reload();
  await expect(size).toHaveValue('18');
  await expect(page.getByLabel('Announce new lines')).toBeChecked();
});

test('over HTTP, the page says where tokens are made', async ({ page, daemon }) => {
  await open(page, daemon, '/settings/tokens');
  await expect(page.getByText(/Tokens are made and revoked at the machine itself/)).toBeVisible();
  await expect(page.getByText('ostler token link')).toBeVisible();
  await expectAccessible(page);
  await expectNoOverflow(page);
});

test('over the socket, tokens are listed, made, shown once and revoked', async ({ page, daemon }) => {
  await overSocket(page, daemon);
  await open(page, daemon, '/settings/tokens');
  await expect(page.getByRole('rowheader', { name: 'default' })).toBeVisible();
  await page.getByRole('button', { name: 'New token' }).click();
  const dialog = page.getByRole('dialog', { name: 'New token' });
  await dialog.getByRole('button', { name: 'Make it' }).click();
  await expect(dialog).toContainText('A name is needed.');
  await dialog.getByLabel('Name').fill('builds');
  await dialog.getByLabel('project:write').check();
  await dialog.getByLabel('Ends').selectOption('7 days');
  await expectAccessible(page);
  await dialog.getByRole('button', { name: 'Make it' }).click();
  const made = page.getByRole('dialog', { name: 'Token builds' });
  const secret = (await made.locator('code').textContent()) ?? '';
  expect(secret).toMatch(/^ostler_[\w-]{43}$/);
  await made.getByRole('button', { name: 'I have kept it' }).click();
  await expect(page.getByText(secret)).toHaveCount(0);

  // It is one that the daemon knows, and no longer when it is revoked.
  expect(daemon.ostler('token', 'list')).toMatch(/builds.*project:read.*project:write/);
  const row = page.getByRole('row').filter({ hasText: 'builds' });
  await expect(row).toContainText('project:write');
  await page.getByRole('button', { name: 'New token' }).click();
  await dialog.getByLabel('Name').fill('builds');
  await dialog.getByRole('button', { name: 'Make it' }).click();
  await expect(dialog.getByRole('alert')).toContainText('builds');
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await row.getByRole('button', { name: 'Revoke builds' }).click();
  const asks = page.getByRole('dialog', { name: 'Revoke builds' });
  await expect(asks.getByRole('button', { name: 'Cancel' })).toBeFocused();
  await asks.getByRole('button', { name: 'Revoke', exact: true }).click();
  await expect(row).toHaveCount(0);
  expect(daemon.ostler('token', 'list')).not.toContain('builds');
});

test('without a policy, every command may run', async ({ page, daemon }) => {
  await open(page, daemon, '/settings/policy');
  await expect(page.getByText('No policy is set: every command may run.')).toBeVisible();
  await page.getByLabel('Command', { exact: true }).fill('rm -rf /');
  await page.getByRole('button', { name: 'Check' }).click();
  await expect(page.locator('.verdict [data-decision="allow"]').first()).toHaveText('Allow');
});

test('with a policy, its rules are listed and a command is checked', async ({ page }) => {
  const daemon = new Daemon({ 'policy.mode': 'default' });
  await daemon.start();
  try {
    await open(page, daemon, '/settings/policy');
    await page.getByLabel('Search rules').fill('look.files');
    await expect(page.getByRole('row').filter({ hasText: 'look.files' })).toContainText('reads only');
    const verdict = page.locator('.verdict');
    await page.getByLabel('Command', { exact: true }).fill('ls -la | sort');
    await page.getByRole('button', { name: 'Check' }).click();
    await expect(verdict.locator('.decision [data-decision]')).toHaveText('Allow');
    await expect(verdict).toContainText('look.files');
    await page.getByLabel('Command', { exact: true }).fill('git push --force');
    await page.getByRole('button', { name: 'Check' }).click();
    await expect(verdict.locator('.decision [data-decision]')).toHaveText(/Ask|Deny/);
    await expect(verdict).toContainText('git push --force');
    expect(daemon.ostler('ps', '--all')).not.toContain('git push');
    await expectAccessible(page);
    await expectNoOverflow(page);
  } finally {
    await daemon.close();
  }
});

test('the table of the doctor, or where to see it', async ({ page, daemon }) => {
  await open(page, daemon, '/settings/doctor');
  const isServed = (await daemon.fetch('/api/v1/doctor')).ok;
  if (!isServed) await expect(page.getByText('ostler doctor', { exact: true })).toBeVisible();
  await page.route('**/api/v1/doctor', (route) =>
    route.fulfill({
      json: {
        checks: [
          { name: 'write to /usr', holds: true, detail: 'Read-only file system (os error 30)' },
          { name: 'make a namespace', holds: false, detail: 'Operation not permitted', remedy: 'Allow it.' },
        ],
      },
    }),
  );
  await page.reload();
  await expect(page.getByText('1 of 2 checks is not as it must be.')).toBeVisible();
  await expect(page.getByRole('row').nth(1)).toContainText('Does not hold');
  await expect(page.getByRole('row').nth(1)).toContainText('Allow it.');
  await expectAccessible(page);
  await expectNoOverflow(page);
});

test('the page says which daemon this is, and signs out', async ({ page, daemon }) => {
  await open(page, daemon, '/settings/about');
  await expect(page.getByText(/^Ostler \d+\.\d+\.\d+/)).toBeVisible();
  await expect(page.getByRole('main').getByText('Live')).toBeVisible();
  await expect(page.getByText(/^PID \d+$/)).toBeVisible();
  await expect(page.getByText(join(daemon.dir, 'state', 'ostler'))).toBeVisible();
  await expect(page.getByText(/^until \d/)).toBeVisible();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await expect(page).toHaveTitle('Sign in – Ostler');
});

test('who is signed out because the token was revoked is told so', async ({ page, daemon }) => {
  const { token } = JSON.parse(daemon.ostler('token', 'new', 'for-a-page', '--json'));
  await page.goto(`${daemon.url}/history`);
  await page.getByLabel('Or enter a token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page).toHaveTitle('History – Ostler');
  daemon.ostler('token', 'revoke', 'for-a-page');
  await expect(page.getByRole('alert')).toHaveText('Your access ended: sign in again.');
  await expectAccessible(page);
});

for (const section of ['', '/output', '/about']) {
  test(`settings${section} fit narrow windows and long texts, and have no barriers`, async ({
    page,
    daemon,
  }) => {
    await open(page, daemon, `/settings${section}`);
    await expect(page.getByRole('heading', { level: 2 })).toBeVisible();
    await expectAccessible(page);
    await expectNoOverflow(page);
    await lengthenTexts(page);
    await expectNoOverflow(page);
  });
}
