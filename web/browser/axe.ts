/** What axe-core finds wrong with a page. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect, type Page } from '@playwright/test';
import type { AxeResults, RunOptions } from 'axe-core';

/** As a text that is evaluated: the page lets no script in that is not its own. */
const SOURCE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

declare global {
  interface Window {
    axe: { run: (context: Document, options: RunOptions) => Promise<AxeResults> };
  }
}

/** Expects no serious finding in the light and the dark theme. */
export async function expectAccessible(page: Page): Promise<void> {
  // Colours that are on their way to others are no finding.
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await page.evaluate(SOURCE);
  for (const theme of ['light', 'dark']) {
    await page.evaluate((value) => {
      document.documentElement.dataset['theme'] = value;
    }, theme);
    const findings = await page.evaluate(async () => {
      const { violations } = await window.axe.run(document, { resultTypes: ['violations'] });
      return violations
        .filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .map(
          ({ id, nodes }) =>
            `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join('\n')}`,
        );
    });
    expect(findings, `in the ${theme} theme`).toEqual([]);
  }
}

/** Expects that the page is not wider than the window, in narrow, middling and very wide ones. */
export async function expectNoOverflow(page: Page, what = ''): Promise<void> {
  const before = page.viewportSize();
  for (const width of [360, 390, 768, 1024, 3840]) {
    await page.setViewportSize({ width, height: 844 });
    await expect.poll(() => overflow(page), { message: `${what} at ${width} pixels` }).toBe(0);
  }
  if (before) await page.setViewportSize(before);
}

/** The pixels by which the content is wider than the window. */
async function overflow(page: Page): Promise<number> {
  return page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    const main = document.getElementById('main');
    const inside = main
      ? Math.max(0, ...[main, ...main.children].map((it) => it.scrollWidth - it.clientWidth))
      : 0;
    return Math.max(scrollWidth - clientWidth, inside);
  });
}

/** Makes each text of the page 40 % longer, as a German one may be. */
export async function lengthenTexts(page: Page): Promise<void> {
  await page.evaluate(() => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const text = node.nodeValue?.trim() ?? '';
      if (!/\p{L}{3}/u.test(text)) continue;
      node.nodeValue = `${node.nodeValue} ${'ünverändert'.repeat(20).slice(0, Math.ceil(text.length * 0.4))}`;
    }
  });
}
