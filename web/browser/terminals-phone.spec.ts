/** Terminals in narrow windows, by touch, and for those who cannot see them. */
import { expectAccessible, expectNoOverflow, lengthenTexts } from './axe';
import { expect, open, test } from './fixture';
import { enter, frame, isIn, lines, newShell, openTerminal, sees } from './terminals-helpers';

test.describe('on a phone', () => {
  test.use({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });

  test('the row of keys: Esc, Tab, Ctrl, arrows', async ({ page, daemon }) => {
    await newShell(page, daemon);
    const keys = page.getByRole('toolbar', { name: 'Keys' });
    await enter(page, 'sleep 300');
    await keys.getByRole('button', { name: 'Ctrl', exact: true }).tap();
    await page.keyboard.type('c');
    await sees(page, '^C');
    await page.keyboard.type('echo tw');
    await keys.getByRole('button', { name: 'Arrow left' }).tap();
    await page.keyboard.type('-');
    await page.keyboard.press('Enter');
    await sees(page, 't-w');
    await enter(page, 'cat -v');
    await keys.getByRole('button', { name: 'Esc' }).tap();
    await keys.getByRole('button', { name: 'Tab', exact: true }).tap();
    await keys.getByRole('button', { name: 'Arrow up' }).tap();
    await page.keyboard.press('Enter');
    await sees(page, '^[');
    await expectNoOverflow(page);
  });

  test('a large terminal is watched whole', async ({ page, daemon }) => {
    const { id } = daemon.run(['cat'], '--tty');
    await openTerminal(page, daemon, id);
    await expect(frame(page)).toContainText('Nobody types, you watch');
    const screen = page.locator('.xterm-screen');
    await expect.poll(async () => (await screen.boundingBox())?.width).toBeLessThanOrEqual(390);
    await expectNoOverflow(page);
  });
});

test('an open terminal has no serious finding, and longer texts fit', async ({ page, daemon }) => {
  await newShell(page, daemon);
  await enter(page, 'ls --color=always /; (exit 4)');
  await frame(page).getByRole('button', { name: 'Search in the terminal' }).click();
  await expectAccessible(page);
  await frame(page)
    .getByRole('button', { name: /Size and letters/ })
    .click();
  await expectAccessible(page);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'New shell' }).click();
  await expectAccessible(page);
  await page.keyboard.press('Escape');
  await lengthenTexts(page);
  await expectNoOverflow(page);
});

test('the grid has no serious finding, and longer texts fit', async ({ page, daemon }) => {
  daemon.run('echo a tile; sleep 60', '--tty');
  await open(page, daemon, '/terminals');
  await expect(page.locator('.tile .xterm-rows').first()).toContainText('a tile');
  await expectAccessible(page);
  await lengthenTexts(page);
  await expectNoOverflow(page);
});

test('lines for screen readers can be switched on', async ({ page, daemon }) => {
  const { id } = daemon.run('echo read this; sleep 60', '--tty');
  await openTerminal(page, daemon, id);
  await frame(page)
    .getByRole('button', { name: /Size and letters/ })
    .click();
  await page.getByLabel('Lines for screen readers').check();
  await expect(frame(page).getByText('read this').first()).toBeAttached();
  await page.getByRole('button', { name: 'Larger letters' }).click();
  await expect(page.getByRole('dialog')).toContainText('14 px');
  await isIn(page, 'watching');
  await expect(lines(page)).toContainText('read this');
});
