/** Characters that reorder text or show nothing are written out, wherever commands and people put them. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { ended, start } from './executions';
import { expect, open, test } from './fixture';
import { ask, clearQuestions } from './inbox-helpers';

const OVERRIDE = '\u202e';

test('a command, its description and its labels read as they are', async ({ page, daemon, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const command = `echo 'safe ${OVERRIDE}gnp.exe'`;
  const { id, uuid } = await start(daemon, command, {
    description: `not ${OVERRIDE}what`,
    labels: [`hidden\u200b`, 'hidden'],
  });
  await ended(daemon, id);
  await open(page, daemon, '/processes?label=hidden');
  const row = page.locator(`[data-row="${uuid}"]`);
  await expect(row).toContainText("echo 'safe \\u{202e}gnp.exe'");
  await expect(row).toContainText('hidden\\u{200b}');
  await page.goto(`${daemon.url}/history`);
  await expect(page.locator(`[data-entry="${uuid}"]`)).toContainText("echo 'safe \\u{202e}gnp.exe'");
  await page.goto(`${daemon.url}/p/${id}`);
  const main = page.getByRole('main');
  await expect(main.getByRole('heading', { level: 1 })).toContainText('safe \\u{202e}gnp.exe');
  await expect(main).toContainText('not \\u{202e}what');
  await expect(page).toHaveTitle(/safe \\u\{202e\}gnp\.exe/);
  expect(await page.locator('header, aside').allInnerTexts()).not.toContainEqual(
    expect.stringContaining(OVERRIDE),
  );
  await page.getByRole('button', { name: 'Copy the command' }).click();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(command);
});

test('a changed file is listed and titled by its name, and its diff is shown', async ({ page, daemon }) => {
  const project = join(daemon.dir, 'hidden');
  mkdirSync(project);
  const script = `echo 'x ${OVERRIDE}y' > 'evil${OVERRIDE}txt.sh'`;
  const { id } = daemon.run(['sh', '-c', script], '--overlay', '--cwd', project);
  await ended(daemon, id);
  await open(page, daemon, `/p/${id}`);
  await page.getByRole('button', { name: 'evil\\u{202e}txt.sh' }).click();
  const dialog = page.getByRole('dialog', { name: 'evil\\u{202e}txt.sh' });
  await expect(dialog).toContainText('+x \\u{202e}y');
});

test('a question and its options read as they are; the answer is exact', async ({ page, daemon }) => {
  await clearQuestions(daemon);
  const { id } = await ask(daemon, {
    kind: 'confirmation',
    message: `Delete ${OVERRIDE}this?`,
    options: [`yes${OVERRIDE}`, 'no'],
  });
  await open(page, daemon, `/inbox/${id}`);
  const question = page.getByRole('article', { name: 'Question' });
  await expect(question).toContainText('Delete \\u{202e}this?');
  const answer = page.waitForRequest(/\/answer$/);
  await question.getByRole('button', { name: 'yes\\u{202e}' }).click();
  expect((await answer).postDataJSON()).toEqual({ value: `yes${OVERRIDE}` });
});
