/** The changes of a process in its overlay, and their commit. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expectAccessible } from './axe';
import { ended } from './executions';
import { expect, open, test } from './fixture';

test('what changed on the host meanwhile is listed, prevents a commit and can be discarded', async ({
  page,
  daemon,
}) => {
  const project = join(daemon.dir, 'project');
  mkdirSync(project);
  const notes = join(project, 'notes.txt');
  writeFileSync(notes, 'before\n');
  const { id } = daemon.run(
    ['sh', '-c', 'echo mine > notes.txt; echo new > added.txt'],
    '--overlay',
    '--cwd',
    project,
  );
  await ended(daemon, id);
  await open(page, daemon, `/p/${id}`);
  const changes = page.getByRole('region', { name: 'Changes in the workspace' });
  await expect(changes.getByRole('button', { name: 'added.txt' })).toBeVisible();
  await expect(changes).not.toContainText('Changed on the host');

  writeFileSync(notes, 'theirs\n');
  await page.reload();
  const told = changes.locator('.warning').filter({ hasText: 'Changed on the host since the start' });
  await expect(told.getByRole('listitem')).toHaveCount(1);
  await expect(told.getByRole('listitem')).toContainText('notes.txt');
  await expectAccessible(page);

  const commit = changes.getByRole('button', { name: 'Commit', exact: true });
  /** Presses a button, and waits until the page has read the process again. */
  const pressed = async () => {
    const path = `/api/v1/executions/${id}`;
    const read = page.waitForResponse((response) => response.url().endsWith(path));
    await commit.click();
    await (await read).finished();
    // Drawn with what was read.
    await page.evaluate(
      () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))),
    );
  };
  await page.route('**/workspace/commit*', (route) => route.abort(), { times: 1 });
  await pressed();
  await expect(changes.getByRole('alert')).toContainText('does not answer');
  await pressed();
  await expect(changes.getByRole('alert')).toHaveCount(1);
  await expect(changes.getByRole('alert')).toContainText('Nothing was committed');
  await changes.getByRole('button', { name: 'Discard', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Discard', exact: true }).click();
  await expect(changes).toContainText('discarded');
});
