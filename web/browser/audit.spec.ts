/** The audit log. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator, Page } from '@playwright/test';
import { expectAccessible, expectNoOverflow, lengthenTexts } from './axe';
import { Daemon } from './daemon';
import { ended, start } from './executions';
import { expect, open, test } from './fixture';

function rows(page: Page): Locator {
  return page.locator('[data-seq]');
}

test('who asked what, newest first, with isolation and hash', async ({ page, daemon }) => {
  const one = await start(daemon, 'true # audited', { session: 'auditor' });
  await ended(daemon, one.id);
  await open(page, daemon, '/audit?q=audited');
  const row = rows(page).first();
  await expect(row).toContainText('auditor');
  await expect(row).toContainText('Accepted');
  await expect(row).toContainText('# audited');
  await expect(row).toContainText('Medium');
  await expect(row).toContainText(/all in force|without/);
  await expect(row).toContainText('No rule matched');
  await expect(rows(page)).toHaveCount(1);
  await page.getByRole('radiogroup', { name: 'Entries' }).getByText('All entries').click();
  await expect(page).toHaveURL(/show=all/);
  // Accepted, started, ended.
  await expect(rows(page)).toHaveCount(3);
  await expect(rows(page).first()).toContainText('Ended');
  await row.getByRole('button', { name: /^Show all of entry/ }).click();
  const hash = page.locator('.detail .hash');
  await expect(hash).toContainText(/^[0-9a-f]{64}/);
  await rows(page).last().getByRole('link').click();
  await expect(page).toHaveURL(new RegExp(`/p/${one.id}$`));
});

test('what was refused is told with its reason', async ({ page, daemon }) => {
  expect(() => daemon.ostler('run', '--cwd', '/no/such/place', '--', 'true', 'refused-here')).toThrow();
  await open(page, daemon, '/audit?show=refused&q=refused-here');
  await expect(rows(page)).toHaveCount(1);
  await expect(rows(page)).toContainText('Refused:');
  await expect(rows(page)).toContainText('/no/such/place');
  await expect(rows(page)).toContainText('not started');
});

test('what the policy said is told with its rule', async ({ page }) => {
  const daemon = new Daemon();
  const configuration = join(daemon.dir, 'config', 'ostler');
  mkdirSync(configuration, { recursive: true });
  writeFileSync(join(configuration, 'policy.toml'), POLICY);
  await daemon.start();
  try {
    expect(() => daemon.ostler('run', '--isolation', 'medium', '--', 'shred', 'everything')).toThrow();
    daemon.ostler('run', '--isolation', 'medium', '--', 'true', 'quietly');
    await open(page, daemon, '/audit');
    const denied = rows(page).filter({ hasText: 'shred' });
    await expect(denied).toContainText('Denied');
    await expect(denied).toContainText('no-shred');
    await expect(denied).toContainText('it cannot be undone');
    const allowed = rows(page).filter({ hasText: 'quietly' });
    await expect(allowed).toContainText('Allowed');
    await expect(allowed).toContainText('quiet');
  } finally {
    await daemon.close();
  }
});

const POLICY = `
default = "allow"

[[rule]]
id = "no-shred"
prefix = ["shred"]
decision = "deny"
justification = "it cannot be undone"
match = ["shred a"]
not_match = ["echo shred"]

[[rule]]
id = "quiet"
prefix = ["true"]
decision = "allow"
justification = "it does nothing"
match = ["true"]
not_match = ["echo true"]
`;

test('entries are read backwards, and new ones on request', { tag: '@full' }, async ({ page }) => {
  const daemon = new Daemon();
  await daemon.start();
  try {
    for (let round = 0; round < 12; round += 1) {
      await Promise.all(Array.from({ length: 8 }, () => start(daemon, 'true')));
    }
    await open(page, daemon, '/audit?show=all');
    await expect(page.getByText(/^200 of 200 entries/)).toBeVisible();
    await page.getByRole('button', { name: 'Read older entries' }).click();
    await expect(page.getByText('The oldest entry that is kept is shown.')).toBeVisible();
    await expect(rows(page).last()).toContainText('no. 0');
    const before = await rows(page).count();
    await start(daemon, 'true # newest');
    await page.getByRole('button', { name: /new events?: read/ }).click();
    await expect(rows(page).filter({ hasText: '# newest' }).first()).toBeVisible();
    expect(await rows(page).count()).toBeGreaterThan(before);
  } finally {
    await daemon.close();
  }
});

test('the chain is verified, and a change of it is found', async ({ page }) => {
  const daemon = new Daemon();
  await daemon.start();
  try {
    await ended(daemon, (await start(daemon, 'true')).id);
    await open(page, daemon, '/audit');
    await page.getByRole('button', { name: 'Verify chain' }).click();
    await expect(page.getByRole('region', { name: 'Result of the verification' })).toContainText(
      /\d+ entries, unbroken since/,
    );
    await expectAccessible(page);
    const segment = join(daemon.dir, 'state', 'ostler', 'ledger', '0.seg');
    writeFileSync(segment, readFileSync(segment, 'latin1').replace('"started"', '"adopted"'), 'latin1');
    await page.getByRole('button', { name: 'Verify chain' }).click();
    await expect(page.getByText(/Broken at entry \d+ in .*0\.seg/)).toBeVisible();
    await expectAccessible(page);
    await page.reload();
    await expect(page.getByText(/Entries that cannot be read.*: \d+\. Verify/)).toBeVisible();
    await expect(rows(page)).not.toHaveCount(0);
    await expectAccessible(page);
  } finally {
    await daemon.close();
  }
});

test('accessible, in narrow windows and with longer texts', async ({ page, daemon }) => {
  await start(daemon, 'true # a command that is longer than any phone is wide, and looked at');
  await open(page, daemon, '/audit?q=looked');
  await rows(page).first().getByRole('button').last().click();
  await expectAccessible(page);
  await expectNoOverflow(page);
  await page.setViewportSize({ width: 390, height: 844 });
  await expectAccessible(page);
  await lengthenTexts(page);
  await expectNoOverflow(page);
});
