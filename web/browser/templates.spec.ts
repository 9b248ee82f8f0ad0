/** Command templates: shipped ones, and those of a project. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { expectAccessible, expectNoOverflow, lengthenTexts } from './axe';
import { Daemon } from './daemon';
import { expect, open, test } from './fixture';
import { clearQuestions } from './inbox-helpers';

const DEFINITIONS = `
[[template]]
id = "greet"
name = "Greet somebody"
description = "Prints a greeting"
category = "greetings"
command = "sh"
args_template = ["-c", 'echo "$1, $2 x $3 ($4) in $5"', "greet", "{word}", "{name}", "{times}", "{loud}", "{place}"]
estimated_duration = 90
[template.parameters.word]
type = "choice"
options = ["Hello", "Goodbye"]
default = "Hello"
description = "What is said"
[template.parameters.name]
type = "string"
required = true
description = "Who is greeted"
[template.parameters.times]
type = "integer"
default = 2
description = "How often"
[template.parameters.loud]
type = "boolean"
default = false
description = "Say it loud"
[template.parameters.place]
type = "path"
default = "."
description = "Where it is said"

[[template]]
id = "publish"
name = "Publish"
description = "Asks first"
category = "greetings"
command = "echo"
args_template = ["published", "{version}"]
requires_confirmation = true
[template.parameters.version]
type = "string"
required = true
description = "The version"
`;

/** A project with templates of its own. */
function project(daemon: Daemon, definitions = DEFINITIONS): string {
  const directory = join(daemon.dir, 'shop');
  mkdirSync(join(directory, '.ostler', 'templates'), { recursive: true });
  writeFileSync(join(directory, '.ostler', 'templates', 'shop.toml'), definitions);
  return directory;
}

async function openTemplate(page: Page, daemon: Daemon, id: string, directory: string): Promise<void> {
  await open(page, daemon, `/templates/${id}?${new URLSearchParams({ cwd: directory })}`);
}

const run = (page: Page) => page.getByRole('button', { name: 'Run', exact: true });
const preview = (page: Page) => page.getByRole('region', { name: 'Command' }).locator('pre');

test('templates are listed by category, and found by a word', async ({ page, daemon }) => {
  await open(page, daemon, '/templates');
  const list = page.getByRole('region', { name: 'Templates by category' });
  for (const category of ['analysis', 'documentation', 'project', 'refactoring', 'testing']) {
    await expect(list.getByRole('heading', { name: category, exact: true })).toBeVisible();
  }
  await expect(list.getByRole('link')).toHaveCount(5);
  await page.keyboard.press('/');
  await page.keyboard.type('unit tests');
  await expect(list.getByRole('link')).toHaveCount(1);
  await expect(page).toHaveURL(/q=unit\+tests/);
  await list.getByRole('link', { name: 'Generate tests' }).click();
  await expect(page).toHaveURL(/\/templates\/generate_tests\?/);
  await expect(page).toHaveTitle('Generate tests – Templates – Ostler');
  await expect(page.getByText('Takes about 1m 30s')).toBeVisible();
});

test('a template of a project is filled in, previewed and run', async ({ page, daemon }) => {
  const directory = project(daemon);
  await openTemplate(page, daemon, 'greet', directory);
  await expect(preview(page)).toContainText('greet Hello name 2 false .');
  await expect(preview(page).locator('mark')).toHaveText('name');
  await page.getByLabel('name').fill("World's {word}; rm -rf /");
  await page.getByLabel('word').selectOption('Goodbye');
  await page.getByLabel('times').fill('3');
  await page.getByLabel('Say it loud').check();
  await expect(preview(page)).toContainText(`Goodbye 'World'\\''s {word}; rm -rf /' 3 true .`);
  await run(page).click();
  await expect(page).toHaveURL(/\/p\/[\w-]+$/);
  const id = page.url().split('/').at(-1) ?? '';
  daemon.wait(id);
  // The text is one argument, whatever it contains.
  expect(daemon.ostler('logs', id)).toContain("Goodbye, World's {word}; rm -rf / x 3 (true) in .");
  expect(daemon.info(id)['labels']).toContain('template:greet');
  expect(daemon.info(id)['directory']).toBe(directory);
});

test('each bad parameter is told at its field', async ({ page, daemon }) => {
  await openTemplate(page, daemon, 'greet', project(daemon));
  await page.getByLabel('times').fill('many');
  await page.getByLabel('place').fill('-rf');
  await run(page).click();
  await expect(page.getByText('name is missing')).toBeVisible();
  await expect(page.getByText("times is 'many'; allowed: a whole number of 64 bits")).toBeVisible();
  await expect(
    page.getByText(/place is '-rf'; allowed: a path that does not look like an option/),
  ).toBeVisible();
  // In the order of the form, the first has the focus.
  await expect(page.getByLabel('name')).toBeFocused();
  await expect(page.getByLabel('name')).toHaveAttribute('aria-invalid', 'true');
  await expect(page.getByLabel('word')).toHaveAttribute('aria-invalid', 'false');
  await expect(page).toHaveURL(/\/templates\/greet/);
  await expectAccessible(page);
});

test('a template that asks first is run when a person agrees, and not otherwise', async ({
  page,
  daemon,
}) => {
  await openTemplate(page, daemon, 'publish', project(daemon));
  await expect(page.getByText('A person has to agree to each start.')).toBeVisible();
  await page.getByLabel('version').fill('1.2.3');
  await run(page).click();
  const dialog = page.getByRole('dialog', { name: 'May this run?' });
  await expect(dialog).toContainText('echo published 1.2.3');
  await expect(dialog.getByRole('button', { name: 'No' })).toBeFocused();
  await dialog.getByRole('button', { name: 'No' }).click();
  await expect(dialog).toHaveCount(0);
  await expect(page).toHaveURL(/\/templates\/publish/);
  expect(daemon.ostler('ps', '--all')).not.toContain('published 1.2.3');

  await run(page).click();
  await expectAccessible(page);
  await dialog.getByRole('button', { name: 'Yes, run it' }).click();
  await expect(page).toHaveURL(/\/p\/[\w-]+$/);
  expect(daemon.ostler('logs', page.url().split('/').at(-1) ?? '')).toContain('published 1.2.3');
});

test('a template that was changed meanwhile is shown before it runs', async ({ page }) => {
  const daemon = new Daemon();
  await daemon.start();
  try {
    await openTemplate(page, daemon, 'greet', project(daemon));
    await page.getByLabel('name').fill('Ann');
    await expect(preview(page)).toContainText('greet Hello Ann 2 false .');
    project(daemon, DEFINITIONS.replace('"greet", "{word}"', '"greet", "changed", "{word}"'));
    await run(page).click();
    await expect(page.getByText(/^The template was changed meanwhile/)).toBeVisible();
    await expect(preview(page)).toContainText('greet changed Hello Ann 2 false .');
    expect(daemon.ostler('ps', '--all', '--quiet').trim()).toBe('');
    await run(page).click();
    await expect(page).toHaveURL(/\/p\/[\w-]+$/);
  } finally {
    await daemon.close();
  }
});

/** The id of the only question that is open. */
async function openQuestion(daemon: Daemon): Promise<string> {
  const { interactions } = await (await daemon.fetch('/api/v1/interactions')).json();
  expect(interactions).toHaveLength(1);
  return interactions[0].id;
}

test('a start that somebody allows elsewhere is run, one that is refused is not', async ({
  page,
  daemon,
}) => {
  await clearQuestions(daemon);
  await openTemplate(page, daemon, 'publish', project(daemon));
  await page.getByLabel('version').fill('2.0.0');
  await run(page).click();
  const dialog = page.getByRole('dialog', { name: 'May this run?' });
  await expect(dialog).toContainText('echo published 2.0.0');
  daemon.ostler('interactions', 'answer', await openQuestion(daemon), 'no');
  await expect(dialog).toContainText(/Answered by uid:\d+/);
  await expect(dialog.getByRole('button', { name: 'Yes, run it' })).toHaveCount(0);
  await expect(dialog.getByRole('button', { name: 'Close' }).last()).toBeFocused();
  await page.keyboard.press('Escape');
  await expect(dialog).toHaveCount(0);
  expect(daemon.ostler('ps', '--all')).not.toContain('published 2.0.0');

  await run(page).click();
  await expect(dialog.getByRole('button', { name: 'Yes, run it' })).toBeVisible();
  daemon.ostler('interactions', 'answer', await openQuestion(daemon), 'yes');
  await expect(page).toHaveURL(/\/p\/[\w-]+$/);
  expect(daemon.ostler('logs', page.url().split('/').at(-1) ?? '')).toContain('published 2.0.0');
});

test('a question that ended without notice is closed by Escape, and the next one is shown', async ({
  page,
  daemon,
}) => {
  await clearQuestions(daemon);
  await openTemplate(page, daemon, 'publish', project(daemon));
  await page.getByLabel('version').fill('2.1.0');
  await page.route('**/api/v1/interactions?**', (route) => route.abort());
  await run(page).click();
  const dialog = page.getByRole('dialog', { name: 'May this run?' });
  await expect(dialog).toBeVisible();
  daemon.ostler('interactions', 'answer', await openQuestion(daemon), 'no');
  // The browser closes a dialog by itself at the second Escape.
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  await expect(dialog).toHaveCount(0);
  await run(page).click();
  await expect(dialog).toBeVisible();
  await dialog.getByRole('button', { name: 'No' }).click();
  await expect(dialog).toHaveCount(0);
});

test('a question that the end of the daemon cancelled is told as such', async ({ page }) => {
  const daemon = new Daemon();
  await daemon.start();
  try {
    await openTemplate(page, daemon, 'publish', project(daemon));
    await page.getByLabel('version').fill('2.2.0');
    await run(page).click();
    const dialog = page.getByRole('dialog', { name: 'May this run?' });
    await expect(dialog).toContainText('echo published 2.2.0');
    await daemon.kill();
    await daemon.start();
    await expect(dialog).toContainText(/Cancelled/);
    await dialog.getByRole('button', { name: 'Close' }).last().click();
    await expect(dialog).toHaveCount(0);
    await run(page).click();
    await expect(dialog.getByRole('button', { name: 'Yes, run it' })).toBeVisible();
  } finally {
    await daemon.close();
  }
});

test('what is wrong with a file of templates is told', async ({ page, daemon }) => {
  const directory = project(daemon, '[[template]]\nid = "broken"\nnonsense = 1\n');
  await open(page, daemon, `/templates?${new URLSearchParams({ cwd: directory })}`);
  await page.getByText('1 problem in template files').click();
  await expect(page.getByText(/shop\.toml.*nonsense/)).toBeVisible();
});

test('a directory that is none is told at its field', async ({ page, daemon }) => {
  await open(page, daemon, '/templates/greet');
  await page.getByLabel('Directory').fill('here');
  await page.getByLabel('Directory').press('Enter');
  await expect(page.getByText('Allowed: an absolute directory.')).toBeVisible();
  await expect(page.getByText('There is no template greet here.')).toBeVisible();
});

test('it fits narrow windows and long texts, and has no barriers', async ({ page, daemon }) => {
  const directory = project(daemon);
  await openTemplate(page, daemon, 'greet', directory);
  await expect(run(page)).toBeVisible();
  await expectAccessible(page);
  await expectNoOverflow(page);
  // In a narrow window, the list and the form are pages of their own.
  await page.setViewportSize({ width: 390, height: 844 });
  await page.getByRole('main').getByRole('link', { name: 'Templates' }).click();
  await expect(page.getByRole('link', { name: /^Greet somebody/ })).toBeVisible();
  await lengthenTexts(page);
  await expectNoOverflow(page);
});
