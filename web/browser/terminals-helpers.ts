/** Terminals on a page, as a person sees and drives them. */
import { expect, type Locator, type Page } from '@playwright/test';
import type { Daemon } from './daemon';
import { open } from './fixture';

/** The frame of the terminal that is shown. */
export function frame(page: Page): Locator {
  return page.getByRole('region', { name: 'Terminal session' });
}

/** The lines of the terminal that are visible. */
export function lines(page: Page): Locator {
  return frame(page).locator('.xterm-rows');
}

/** Waits until a text is visible in the terminal. */
export async function sees(page: Page, text: string | RegExp, timeout = 15_000): Promise<void> {
  await expect(lines(page)).toContainText(text, { timeout });
}

/** Waits until the frame says that the page types, watches, or that the session ended. */
export async function isIn(
  page: Page,
  mode: 'typing' | 'watching' | 'ended' | 'broken',
  options: { timeout?: number } = {},
): Promise<void> {
  await expect(frame(page)).toHaveAttribute('data-mode', mode, options);
}

/** Starts a shell by the dialog of the page; answers its id. */
export async function newShell(page: Page, daemon: Daemon, shell = 'bash'): Promise<string> {
  await open(page, daemon, '/terminals');
  await page.getByRole('button', { name: 'New shell' }).first().click();
  const dialog = page.getByRole('dialog', { name: 'New shell' });
  await dialog.getByLabel('Shell').selectOption(shell);
  await dialog.getByLabel('Directory').fill(daemon.dir);
  await dialog.getByRole('button', { name: 'Start' }).click();
  await isIn(page, 'typing');
  await prompt(page);
  return new URL(page.url()).pathname.split('/').at(-1) ?? '';
}

/** Waits for a prompt: a shell that starts discards what was typed before. */
async function prompt(page: Page): Promise<void> {
  await expect(lines(page)).toContainText(/[$#%>]/);
}

/** Types a line, and Enter. */
export async function enter(page: Page, line: string): Promise<void> {
  await page.keyboard.type(line);
  await page.keyboard.press('Enter');
}

/** Opens the terminal of an execution. */
export async function openTerminal(page: Page, daemon: Daemon, id: string): Promise<void> {
  await open(page, daemon, `/t/${id}`);
  await expect(frame(page).locator('.host.ready')).toBeVisible();
}

/** The size that is written in the frame. */
export async function shownSize(page: Page): Promise<string> {
  const text = await frame(page)
    .getByRole('button', { name: /Size and letters/ })
    .textContent();
  return (text ?? '').trim();
}

/** The middle of a part of a page, for a mouse: what lies above the lines of a terminal takes its events. */
export async function centre(part: Locator): Promise<{ x: number; y: number }> {
  const box = await part.boundingBox();
  if (!box) throw new Error('not on the page');
  return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
}
