/** What commands may print: markup, escape sequences, links, every kind of line end, binary, lines without end. */
import type { Page } from '@playwright/test';
import type { Daemon } from './daemon';
import { expect, open, test } from './fixture';
import { expectSeen, log, seenLines } from './log-helpers';

/** Prints bytes, written as in Python. */
function printed(daemon: Daemon, bytes: string, ...flags: string[]): string {
  const script = `import sys; sys.stdout.buffer.write(${bytes})`;
  const { id } = daemon.run(['python3', '-c', script], ...flags);
  daemon.wait(id);
  return id;
}

/** Notes every script that runs and every dialog that opens. */
async function watchScripts(page: Page): Promise<string[]> {
  const found: string[] = [];
  page.on('dialog', (dialog) => {
    found.push(dialog.message());
    void dialog.dismiss();
  });
  page.on('pageerror', (error) => found.push(error.message));
  await page.exposeFunction('wasRun', () => found.push('wasRun'));
  return found;
}

const ATTACKS = [
  '<script>wasRun()</script>',
  '<img src=x onerror=wasRun()>',
  '"><svg onload=wasRun()>',
  "'-wasRun()-'",
  '{@html wasRun()}',
  '<a href="javascript:wasRun()">x</a>',
  '</title><script>wasRun()</script>',
];

test('markup in output, command, description and labels is text', async ({ page, daemon }) => {
  const found = await watchScripts(page);
  const flags = ['--description', ATTACKS[1] ?? '', ...ATTACKS.flatMap((text) => ['--label', text])];
  const { id } = daemon.run(['printf', '%s\n', ...ATTACKS], ...flags);
  daemon.wait(id);
  await open(page, daemon, `/p/${id}`);
  for (const text of ATTACKS) await expectSeen(page, text);
  await expect(page.getByRole('heading', { level: 1 })).toContainText(ATTACKS[0] ?? '');
  await expect(page.getByRole('list', { name: 'Labels' })).toContainText(ATTACKS[2] ?? '');
  await expect(page).toHaveTitle(/<script>wasRun\(\)<\/script>/);
  const made = await page.evaluate(() => {
    const main = document.getElementById('main');
    return {
      elements: main?.querySelectorAll('script, img, iframe, object, embed, [onload], [onerror]').length,
      links: [...(main?.querySelectorAll('a') ?? [])].filter((link) => !/^https?:/.test(link.href)).length,
    };
  });
  expect(made).toEqual({ elements: 0, links: 0 });
  for (const section of ['env', 'events', 'resources']) {
    await page.goto(`${daemon.url}/p/${id}/${section}`);
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  }
  expect(found).toEqual([]);
});

test('hyperlinks lead to the web and nowhere else; escape sequences do nothing', async ({ page, daemon }) => {
  const found = await watchScripts(page);
  const link = (address: string, text: string) =>
    `b"\\x1b]8;;${address}\\x1b\\\\${text}\\x1b]8;;\\x1b\\\\\\n"`;
  const id = printed(
    daemon,
    [
      link('javascript:wasRun()', 'one'),
      link('data:text/html,<script>wasRun()</script>', 'two'),
      link('file:///etc/passwd', 'three'),
      link('https://example.org/a?b=1', 'four'),
      'b"see http://localhost:5173/app, and so on\\n"',
      'b"\\x1b]0;title\\x07\\x1b[2J\\x1b[H\\x1b]52;c;d2FzUnVu\\x07\\x1b[31;1mred\\x1b[0m\\x1b[?25l\\n"',
      'b"\\x1b]8;;https://example.org/\\" onmouseover=\\"wasRun()\\x1b\\\\five\\x1b]8;;\\x1b\\\\\\n"',
    ].join(' + '),
  );
  await open(page, daemon, `/p/${id}`);
  await expectSeen(page, 'red');
  const links = log(page).locator('.log-link');
  const addresses = await links.evaluateAll((all) =>
    all.map((it) => [it.textContent, (it as HTMLAnchorElement).href, (it as HTMLAnchorElement).rel]),
  );
  expect(addresses).toEqual([
    ['four', 'https://example.org/a?b=1', 'noopener noreferrer'],
    ['http://localhost:5173/app', 'http://localhost:5173/app', 'noopener noreferrer'],
    ['five', 'https://example.org/%22%20onmouseover=%22wasRun()', 'noopener noreferrer'],
  ]);
  await expect(log(page).locator('.log-f1.log-bold')).toHaveText('red');
  for (const text of ['one', 'two', 'three']) await expectSeen(page, text);
  await log(page).getByText('one', { exact: true }).click();
  await expect(page).toHaveTitle(/Ostler/);
  expect(found).toEqual([]);
});

test('carriage returns, CRLF, lone line feeds and no line end', async ({ page, daemon }) => {
  const id = printed(
    daemon,
    'b"crlf\\r\\n" + b"lf\\n" + b"\\n" + b"".join(b"\\r%d %%" % n for n in range(1, 216)) + b"\\n" + b"tab\\there\\n" + b"last"',
  );
  await open(page, daemon, `/p/${id}`);
  await expectSeen(page, 'last');
  expect((await seenLines(page)).map(({ text }) => text)).toEqual([
    'crlf',
    'lf',
    '',
    '215 %',
    'tab\there',
    'last',
  ]);
  await expect(log(page).locator('.log-note')).toHaveText('↻ 214 redraws');
});

test('NUL, invalid UTF-8 and control characters are seen, and their bytes can be read', async ({
  page,
  daemon,
}) => {
  const id = printed(daemon, 'b"text\\n" + b"\\xff\\xfe\\x00\\x07 end\\n" + b"\\xe2\\x82\\xac\\n"');
  await open(page, daemon, `/p/${id}`);
  await expectSeen(page, '��␀␇ end');
  await expectSeen(page, '€');
  await log(page).getByRole('button', { name: 'hex view' }).click();
  const dialog = page.getByRole('dialog', { name: 'Bytes from line 2 on' });
  await expect(dialog).toContainText('00000005  ff fe 00 07 20 65 6e 64  0a e2 82 ac 0a');
  await page.keyboard.press('Escape');
  await expect(dialog).toBeHidden();
});

test('a line of 5 MB is cut in view, opened in part, and saved whole', async ({ page, daemon }) => {
  const id = printed(daemon, 'b"begin\\n" + b"x" * 5_000_000 + b"\\nend\\n"');
  await open(page, daemon, `/p/${id}`);
  await expectSeen(page, 'end');
  const shown = (await seenLines(page))[1];
  expect(shown?.text).toBe('x'.repeat(4_096));
  await log(page).getByRole('button', { name: '… 5.0 MB more, open' }).click();
  const dialog = page.getByRole('dialog', { name: 'line 2' });
  await expect(dialog).toContainText('4.9 MB more are not shown here.');
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    dialog.getByRole('button', { name: 'Save the line' }).click(),
  ]);
  const { readFileSync } = await import('node:fs');
  expect(readFileSync(await download.path()).length).toBe(5_000_000);
});

test('stderr has its bar and its filter, colours can be switched off', async ({ page, daemon }) => {
  const { id } = daemon.run(
    'for i in 1 2 3; do echo out $i; sleep 0.05; echo err $i >&2; sleep 0.05; done; printf "\\033[32mgreen\\033[0m\\n"',
  );
  daemon.wait(id);
  await open(page, daemon, `/p/${id}`);
  await expectSeen(page, 'green');
  await expect(log(page).locator('.log-line.err')).toHaveText([/err 1/, /err 2/, /err 3/]);
  await page.getByText('stderr', { exact: false }).first().click();
  await expect(page).toHaveURL(/stream=err/);
  await expect
    .poll(async () => (await seenLines(page)).map(({ text }) => text))
    .toEqual(['err 1', 'err 2', 'err 3']);
  expect((await seenLines(page)).map(({ line }) => line)).toEqual([2, 4, 6]);
  await page.keyboard.press(']');
  await expect.poll(async () => (await seenLines(page)).length).toBe(7);
  await expect(log(page).locator('.log-f2')).toHaveText('green');
  await page.getByRole('button', { name: 'Colours' }).click();
  await expect(log(page).locator('.log-f2')).toHaveCount(0);
  await page.getByRole('button', { name: 'Colours' }).click();
  await expect(log(page).locator('.log-f2')).toHaveText('green');
});

test('lines wrap, times are those of the clock, of the start or off', async ({ page, daemon }) => {
  const { id } = daemon.run(['printf', '%s\n', 'w '.repeat(600), 'next']);
  daemon.wait(id);
  await open(page, daemon, `/p/${id}`);
  const first = await expectSeen(page, 'w '.repeat(600));
  const row = async () => ((await expectSeen(page, 'next')).top - first.top) / 20;
  expect(await row()).toBe(1);
  await page.keyboard.press('w');
  await expect.poll(row).toBeGreaterThan(5);
  await expect(log(page).locator('.log-time').first()).toHaveText(/^\d\d:\d\d:\d\d\.\d{3}$/);
  await page.keyboard.press('t');
  await expect(log(page).locator('.log-time').first()).toHaveText(/^\+0\.\d{3}$/);
  await page.keyboard.press('t');
  await expect(log(page).locator('.log-time')).toHaveCount(0);
  await page.reload();
  await expectSeen(page, 'next');
  await expect(log(page).locator('.log-time')).toHaveCount(0);
  await expect.poll(row).toBeGreaterThan(5);
});

test('a terminal of its own has no streams to choose', async ({ page, daemon }) => {
  const { id } = daemon.run(['sh', '-c', 'echo from a terminal; sleep 0.2'], '--tty');
  daemon.wait(id);
  await open(page, daemon, `/p/${id}`);
  await expectSeen(page, 'from a terminal');
  await expect(page.getByRole('radiogroup', { name: 'Stream' })).toHaveCount(0);
});

test('a question without a line end is seen', async ({ page, daemon }) => {
  const { id } = daemon.run('printf "Continue? [y/n] "; read answer; echo "it was $answer"', '--tty');
  await open(page, daemon, `/p/${id}`);
  await expectSeen(page, 'Continue? [y/n] ');
  daemon.ostler('stop', '--force', id);
});
