/** Values that come twice leave the page as it is. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ended, start } from './executions';
import { expect, open, testApart as test } from './fixture';

test('a label that comes twice, in the address and in the history', async ({ page, daemon }) => {
  const { id, uuid } = await start(daemon, 'true # doubled', { labels: ['twice', 'twice'] });
  await ended(daemon, id);
  await open(page, daemon, '/processes?label=twice&label=twice');
  await expect(page.locator(`[data-row="${uuid}"]`)).toBeVisible();
  await expect(page.getByRole('button', { name: 'Remove the filter label: twice' })).toHaveCount(1);

  await page.goto(`${daemon.url}/history`);
  await expect(page.locator(`[data-entry="${uuid}"]`).getByRole('button', { name: 'twice' })).toHaveCount(1);
});

test('files whose names are no UTF-8 and look alike, each with its own changes', async ({ page, daemon }) => {
  const project = join(daemon.dir, 'alike');
  mkdirSync(join(project, 'sub'), { recursive: true });
  writeFileSync(join(project, 'a'), '');
  const script = `cd sub; echo first > "$(printf 'n\\376')"; echo second > "$(printf 'n\\377')"`;
  const { id } = daemon.run(['sh', '-c', script], '--overlay', '--cwd', project);
  await ended(daemon, id);
  await open(page, daemon, `/p/${id}`);
  const files = page
    .getByRole('region', { name: 'Changes in the workspace' })
    .getByRole('button', { name: 'sub/n' });
  await expect(files).toHaveCount(2);
  for (const [index, text] of ['first', 'second'].entries()) {
    await files.nth(index).click();
    const dialog = page.getByRole('dialog');
    await expect(dialog).toContainText(`+${text}`);
    await expect(dialog).not.toContainText(`+${['first', 'second'][1 - index]}`);
    await page.keyboard.press('Escape');
  }
});
