/** The badge of background services: each sentence of what it must do, with real servers. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator, Page } from '@playwright/test';
import { expectAccessible } from './axe';
import { expect, open, testApart as test } from './fixture';
import {
  deafServer,
  fileServer,
  freePort,
  gatedServer,
  removeServices,
  requestFailure,
  serverThatFailsOnRequest,
  startService,
} from './service-helpers';

test.afterEach(({ daemon }) => removeServices(daemon));

const badge = (page: Page): Locator => page.getByRole('button', { name: /background service/ });
const panel = (page: Page): Locator => page.getByRole('dialog', { name: 'Background services' });
const row = (page: Page, text: string): Locator =>
  panel(page).getByRole('listitem').filter({ hasText: text });

/** Whether an element has the colour of a token of the theme. */
async function expectColour(element: Locator, token: string): Promise<void> {
  await expect(element).toHaveCSS(
    'color',
    await element.evaluate((node, name) => {
      const probe = document.createElement('span');
      probe.style.color = `var(--${name})`;
      node.append(probe);
      const colour = getComputedStyle(probe).color;
      probe.remove();
      return colour;
    }, token),
  );
}

test('it is not there without services, and on every page with one', async ({ page, daemon }) => {
  await open(page, daemon, '/processes');
  await expect(badge(page)).toHaveCount(0);
  const port = await freePort();
  startService(daemon, 'files', fileServer(port));
  await expect(badge(page)).toHaveText('1');
  for (const path of [
    '/processes',
    '/terminals',
    '/services',
    '/inbox',
    '/templates',
    '/history',
    '/settings',
  ]) {
    await page.goto(daemon.url + path);
    await expect(badge(page)).toHaveText('1');
  }
});

test('its number is that of the living services, also in its tooltip', async ({ page, daemon }) => {
  await open(page, daemon, '/history');
  startService(daemon, 'one', fileServer(await freePort()));
  startService(daemon, 'two', fileServer(await freePort()));
  await expect(badge(page)).toHaveText('2');
  await expect(badge(page)).toHaveAttribute('title', '2 services run in the background');
  daemon.ostler('service', 'stop', 'one');
  await expect(badge(page)).toHaveText('1');
  await expect(badge(page)).toHaveAccessibleName('1 background service');
});

test('a click opens a panel of 320 pixels, right aligned, with a card for each', async ({ page, daemon }) => {
  const port = await freePort();
  startService(daemon, 'files', fileServer(port));
  await open(page, daemon, '/processes');
  await badge(page).click();
  await expect(panel(page)).toBeVisible();
  await expect(panel(page).getByRole('heading', { name: 'Background services' })).toBeVisible();
  const [outer, inner] = [await badge(page).boundingBox(), await panel(page).boundingBox()];
  expect(inner?.width).toBe(320);
  expect((inner?.x ?? 0) + (inner?.width ?? 0)).toBeCloseTo((outer?.x ?? 0) + (outer?.width ?? 0), 0);

  // 35 characters, the last of them an ellipsis, in a font of fixed width.
  const command = row(page, 'http.server').locator('code');
  await expect(command).toHaveText(`${`python3 -m http.server ${port} --bind 127.0.0.1`.slice(0, 34)}…`);
  expect(await command.evaluate((node) => node.scrollWidth <= node.clientWidth)).toBe(true);
  await expect(command).toHaveCSS('font-family', /JetBrains Mono/);
  await expect(row(page, 'http.server')).toContainText(/PID \d+/);
  const url = row(page, 'http.server').getByRole('link');
  await expect(url).toHaveText(`localhost:${port}`);
  expect(await (await page.request.get((await url.getAttribute('href')) ?? '')).text()).toContain(
    'Directory listing',
  );
  await expectAccessible(page);
});

test('a service is yellow while it starts, with a pulse on the badge, and green when it is ready', async ({
  page,
  daemon,
}) => {
  await open(page, daemon, '/processes');
  const gate = join(daemon.dir, 'gate');
  startService(daemon, 'slow', gatedServer(await freePort(), gate));
  const dot = badge(page).locator('[data-mood="starting"]');
  await expect(dot).toBeVisible();
  expect(await dot.evaluate((node) => getComputedStyle(node).animationName)).toContain('pulse');
  await expect(badge(page)).toHaveAccessibleName('1 background service, which starts');
  await badge(page).click();
  await expectColour(panel(page).locator('[data-state="starting"]'), 'starting');
  writeFileSync(gate, '');
  await expect(panel(page).locator('[data-state="ready"]')).toHaveText('Ready');
  await expectColour(panel(page).locator('[data-state="ready"]'), 'ready');
  await expect(dot).toHaveCount(0);
});

test('a service that is ill is orange', async ({ page, daemon }) => {
  const port = await freePort();
  const ill = `let n = 0; require('http').createServer((_, r) => { r.statusCode = n++ < 3 ? 200 : 500; r.end() }).listen(${port}, '127.0.0.1')`;
  startService(daemon, 'ill', ['node', '-e', ill], '--health', 'http:/', '--health-interval', '500ms');
  await open(page, daemon, '/processes');
  await badge(page).click();
  await expect(panel(page).locator('[data-state="degraded"]')).toHaveText('Degraded');
  await expectColour(panel(page).locator('[data-state="degraded"]'), 'stopping');
});

test('a service without anything to look at runs, and is blue', async ({ page, daemon }) => {
  startService(daemon, 'watcher', ['sh', '-c', 'while sleep 1; do :; done']);
  await open(page, daemon, '/processes');
  await badge(page).click();
  await expect(panel(page).locator('[data-state="running"]')).toHaveText('Running');
  await expectColour(panel(page).locator('[data-state="running"]'), 'running');
});

test('the cross stops: at once orange, in the list until it has ended, then gone with the badge', async ({
  page,
  daemon,
}) => {
  startService(daemon, 'deaf', deafServer(await freePort()));
  startService(daemon, 'files', fileServer(await freePort()));
  await open(page, daemon, '/processes');
  await badge(page).click();
  await expect(panel(page).locator('[data-state="ready"]')).toHaveCount(2);
  await page.evaluate(() => {
    document.body.dataset['clicks'] = '0';
    document.addEventListener('click', () => {
      document.body.dataset['clicks'] = String(Number(document.body.dataset['clicks']) + 1);
    });
  });
  const deaf = row(page, 'SIGTERM');
  await deaf.getByRole('button', { name: 'Stop deaf' }).click();
  await expect(deaf.locator('[data-state="stopping"]')).toHaveText('Stopping', { timeout: 500 });
  await expectColour(deaf.locator('[data-state="stopping"]'), 'stopping');
  // The click went no further, and the panel is still open.
  expect(await page.evaluate(() => document.body.dataset['clicks'])).toBe('0');
  await page.waitForTimeout(1_500);
  await expect(deaf.locator('[data-state="stopping"]')).toBeVisible();
  await expect(badge(page)).toHaveText('2');
  // Each is stopped by itself: the other one goes first.
  await row(page, 'http.server').getByRole('button', { name: 'Stop files' }).click();
  await expect(row(page, 'http.server')).toHaveCount(0);
  await expect(badge(page)).toHaveText('1');
  await expect(badge(page)).toHaveCount(0, { timeout: 20_000 });
  await expect(panel(page)).toHaveCount(0);
});

test('a service that stops stays orange until its ports are free', { tag: '@full' }, async ({
  page,
  daemon,
}) => {
  const port = await freePort();
  const shared = (name: string) => [
    'python3',
    '-c',
    `import socket,time
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
s.bind(("127.0.0.1", ${port})); s.listen()
while True: c, _ = s.accept(); c.recv(999); c.send(b"HTTP/1.0 200 OK\\r\\n\\r\\n"); c.close() # ${name}`,
  ];
  startService(daemon, 'mine', shared('mine'), '--ready-when', 'listening');
  await open(page, daemon, '/processes');
  await badge(page).click();
  await expect(panel(page).locator('[data-state="ready"]')).toBeVisible();
  // Another program listens on the same port.
  const stranger = daemon.run(shared('stranger'));
  await page.waitForTimeout(700);
  await panel(page).getByRole('button', { name: 'Stop mine' }).click();
  await expect(panel(page).locator('[data-state="stopping"]')).toBeVisible();
  await expect.poll(() => daemon.ostler('service', 'ps', '--all-workspaces')).not.toMatch(/mine.*ready/);
  await page.waitForTimeout(1_000);
  await expect(panel(page).locator('[data-state="stopping"]')).toBeVisible();
  daemon.ostler('stop', '--force', stranger.id);
  await expect(badge(page)).toHaveCount(0);
});

test('a service that fails after it was ready is red, and stays until it is dismissed', async ({
  page,
  daemon,
}) => {
  const port = await freePort();
  startService(daemon, 'flaky', serverThatFailsOnRequest(port));
  await open(page, daemon, '/processes');
  await badge(page).click();
  await expect(panel(page).locator('[data-state="ready"]')).toBeVisible();
  await requestFailure(port);
  await expect(panel(page).locator('[data-state="failed"]')).toHaveText('Failed');
  await expectColour(panel(page).locator('[data-state="failed"]'), 'failed');
  await expect(badge(page)).toHaveText('0');
  await expect(badge(page).locator('[data-mood="failed"]')).toBeVisible();
  await expect(badge(page)).toHaveAccessibleName('0 background services, and a failure to look at');
  await expect(panel(page)).toContainText('exit 1');
  await page.reload();
  await badge(page).click();
  await panel(page).getByRole('button', { name: 'Dismiss flaky' }).click();
  await expect(badge(page)).toHaveCount(0);
});

test('a service that fails again and again is red', { tag: '@full' }, async ({ page, daemon }) => {
  startService(daemon, 'loops', ['sh', '-c', 'sleep 0.2; exit 3'], '--restart', 'on-failure:1');
  await open(page, daemon, '/processes');
  await badge(page).click();
  await expect(panel(page).locator('[data-state="crash_looping"]')).toHaveText('Crash looping');
  await expectColour(panel(page).locator('[data-state="crash_looping"]'), 'failed');
  await panel(page).getByRole('link', { name: 'Why?' }).click();
  await expect(page).toHaveURL(/\/services\/loops$/);
  await expect(page.getByText(/ended 2 times, and its restart policy allows no more/)).toBeVisible();
});

test('it follows the services of the next daemon, without a reload', async ({ page, daemon }) => {
  startService(daemon, 'files', fileServer(await freePort()));
  await open(page, daemon, '/processes');
  await expect(badge(page)).toHaveText('1');
  await daemon.kill();
  await daemon.start();
  startService(daemon, 'more', fileServer(await freePort()));
  await expect(badge(page)).toHaveText('2');
  await badge(page).click();
  await expect(panel(page).locator('[data-state="ready"]')).toHaveCount(2);
});

test('in a narrow window, the panel is within it', async ({ page, daemon }) => {
  await page.setViewportSize({ width: 360, height: 740 });
  startService(daemon, 'files', fileServer(await freePort()));
  await open(page, daemon, '/processes');
  await badge(page).click();
  const box = await panel(page).boundingBox();
  expect(box?.x).toBeGreaterThanOrEqual(0);
  expect((box?.x ?? 0) + (box?.width ?? 999)).toBeLessThanOrEqual(360);
});

test('the keyboard opens it, moves in it, and gets its focus back', async ({ page, daemon }) => {
  startService(daemon, 'one', fileServer(await freePort()));
  startService(daemon, 'two', fileServer(await freePort()));
  await open(page, daemon, '/processes');
  await expect(badge(page)).toHaveText('2');
  await badge(page).focus();
  await page.keyboard.press('Enter');
  await expect(panel(page)).toBeFocused();
  await page.keyboard.press('Escape');
  await expect(panel(page)).toHaveCount(0);
  await expect(badge(page)).toBeFocused();
  // A row with the focus that is gone hands it to the next one.
  await page.keyboard.press('Enter');
  await panel(page).getByRole('button', { name: 'Stop one' }).focus();
  await page.keyboard.press('Enter');
  await expect(panel(page).getByRole('button', { name: 'Stop two' })).toBeFocused();
});
