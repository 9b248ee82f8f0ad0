/** What browser tests see of the log. */
import type { Locator, Page } from '@playwright/test';
import { expect } from './fixture';

export interface SeenLine {
  /** The number in the margin. */
  line: number;
  text: string;
  /** Its upper edge below that of the log, in pixels. */
  top: number;
}

/** The scrolling element. */
export const log = (page: Page): Locator => page.getByRole('log', { name: 'Output' });

/** The rows of lines that are in view, from above. */
export function seenLines(page: Page): Promise<SeenLine[]> {
  return log(page).evaluate((scroller) => {
    const view = scroller.getBoundingClientRect();
    return [...scroller.querySelectorAll<HTMLElement>('.log-line')]
      .map((row) => ({ row, box: row.getBoundingClientRect() }))
      .filter(({ box }) => box.bottom > view.top + 1 && box.top < view.bottom - 1)
      .map(({ row, box }) => ({
        line: Number(row.querySelector('.log-number')?.textContent?.replace(/\D/g, '')),
        text: row.querySelector('.log-runs')?.textContent ?? '',
        top: box.top - view.top,
      }));
  });
}

/** Waits until a line with this text is in view. */
export async function expectSeen(page: Page, text: string, timeout = 15_000): Promise<SeenLine> {
  let found: SeenLine | undefined;
  await expect
    .poll(
      async () => {
        found = (await seenLines(page)).find((line) => line.text === text);
        return found !== undefined;
      },
      { message: `line "${text}" is in view`, timeout },
    )
    .toBe(true);
  if (!found) throw new Error('not in view');
  return found;
}

/** Waits until every row in view is drawn and has its text. */
export async function expectRead(page: Page): Promise<void> {
  // What a scroll event asks for is drawn with the next frame.
  await page.evaluate(
    () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))),
  );
  await expect(log(page).locator('.log-line').first()).toBeAttached();
  await expect(log(page).locator('.log-unknown')).toHaveCount(0);
}

/** Expects that lines follow each other without one missing or there twice; the text is the number, as of `seq`. */
export function expectSequence(lines: readonly SeenLine[]): void {
  expect(lines.length).toBeGreaterThan(5);
  for (const [index, { line, text, top }] of lines.entries()) {
    expect(text).toBe(String(line));
    const before = lines[index - 1];
    if (!before) continue;
    expect(line).toBe(before.line + 1);
    expect(top).toBeGreaterThan(before.top);
  }
}

/** The number of rows that are elements. */
export function rowCount(page: Page): Promise<number> {
  return log(page).evaluate((scroller) => scroller.querySelectorAll('.log-row').length);
}

/** The text of the clipboard. */
export function clipboard(page: Page): Promise<string> {
  return page.evaluate(() => navigator.clipboard.readText());
}
