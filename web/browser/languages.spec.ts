/** Every page in other languages: nothing is wider than the window, and no text is left in English. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { expectNoOverflow } from './axe';
import type { Daemon } from './daemon';
import { post, start } from './executions';
import { expect, open, test } from './fixture';

const PAGES: Record<string, string> = {
  processes: 'common.processes',
  terminals: 'common.terminals',
  services: 'common.services',
  inbox: 'common.interactions',
  templates: 'common.templates',
  history: 'common.history',
  audit: 'common.audit',
  resources: 'common.resources',
  settings: 'common.settings',
};
const ALL = [
  'ca',
  'de',
  'es',
  'fr',
  'hi',
  'id',
  'it',
  'ja',
  'ko',
  'nl',
  'pl',
  'pt-BR',
  'ru',
  'tr',
  'vi',
  'zh-CN',
  'zh-TW',
];

/** A text of a language; of a plural, that for `n`. */
function text(tag: string, key: string, n?: number): string {
  const [area = '', name = ''] = key.split('.');
  const file = join(import.meta.dirname, `../src/i18n/messages/${tag}/${area}.json`);
  const message = JSON.parse(readFileSync(file, 'utf8'))[name];
  if (typeof message === 'string') return message;
  const category = new Intl.PluralRules(tag).select(n ?? 0);
  return message[category].replaceAll('{n}', new Intl.NumberFormat(tag).format(n ?? 0));
}

async function openIn(page: Page, daemon: Daemon, tag: string): Promise<void> {
  await open(page, daemon, '/settings');
  await page.locator('select').first().selectOption(tag);
  await expect(page.locator('html')).toHaveAttribute('lang', tag);
}

test('every page has its title in each language', { tag: '@full' }, async ({ page, daemon }) => {
  test.setTimeout(240_000);
  for (const tag of ALL) {
    await openIn(page, daemon, tag);
    for (const [path, key] of Object.entries(PAGES)) {
      await page.locator(`nav a[href$="/${path}"]`).first().click();
      await expect(page.getByRole('heading', { level: 1 })).toHaveText(text(tag, key));
    }
  }
});

for (const tag of ['de', 'hi', 'ja', 'ru']) {
  test(`nothing overflows in ${tag}`, async ({ page, daemon }) => {
    test.setTimeout(120_000);
    const { id } = await start(daemon, `echo ${tag}; exit 3`, { labels: ['language'] });
    await post(daemon, '/api/v1/interactions', {
      kind: 'confirmation',
      message: 'Go on?',
      timeout_ms: 60_000,
    });
    await openIn(page, daemon, tag);
    for (const path of [...Object.keys(PAGES), `p/${id}`]) {
      await page.goto(`${daemon.url}/${path}`);
      await expect(page.getByRole('main')).not.toBeEmpty();
      // A parameter that was not filled in; escaped characters of a question, `\u{202e}`, are none.
      await expect(page.locator('body')).not.toContainText(/(?<!\\u)\{\w+\}/);
      await expectNoOverflow(page, path);
    }
  });
}

test('numbers take their plural', async ({ page, daemon }) => {
  await openIn(page, daemon, 'ru');
  const label = 'plural';
  for (const count of [1, 2, 5]) {
    while ((await rowsWith(daemon, label)) < count) await start(daemon, 'sleep 300', { labels: [label] });
    await page.goto(`${daemon.url}/processes?label=${label}`);
    await expect(page.locator('[data-row]')).toHaveCount(count);
    // All of them, by the head of the table.
    await page.getByRole('checkbox').first().check();
    await page.keyboard.press('s');
    const asks = page.getByRole('dialog', { name: text('ru', 'processes.ask_stop', count) });
    await expect(asks).toBeVisible();
    await page.keyboard.press('Escape');
  }
});

async function rowsWith(daemon: Daemon, label: string): Promise<number> {
  const answer = await daemon.fetch(`/api/v1/executions?label=${label}&status=running`);
  return ((await answer.json()) as { executions: unknown[] }).executions.length;
}
