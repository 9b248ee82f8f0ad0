/** Terminals: started, watched, taken over, handed back, resized, searched and read. */
import { expect, open, test } from './fixture';
import {
  centre,
  enter,
  frame,
  isIn,
  lines,
  newShell,
  openTerminal,
  sees,
  shownSize,
} from './terminals-helpers';

test.use({ permissions: ['clipboard-read', 'clipboard-write'] });

test('a shell is started by the dialog, and its commands are marked', async ({ page, daemon }) => {
  await newShell(page, daemon);
  await enter(page, 'echo first; echo second');
  await enter(page, '(exit 7)');
  await enter(page, 'printf unfinished');
  const marks = page.getByRole('group', { name: 'Commands in this terminal' }).getByRole('button');
  await expect(marks).toHaveCount(3);
  await expect(marks.nth(1)).toHaveText('✕7');
  await expect(marks.nth(1)).toHaveAccessibleName(/Exit status 7/);
  await marks.nth(0).click();
  await expect(frame(page)).toContainText('Copied 2 lines of output');
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe('first\nsecond\n');
  await marks.nth(2).click();
  await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe('unfinished');
});

test('commands are found again by a page that comes later, and jumped to', { tag: '@full' }, async ({
  page,
  daemon,
}) => {
  const id = await newShell(page, daemon);
  await enter(page, '(exit 3)');
  await enter(page, 'seq 1 300');
  await sees(page, '300');
  await page.reload();
  await expect(frame(page).locator('.host.ready')).toBeVisible();
  await isIn(page, 'watching');
  await page.keyboard.press('Control+ArrowUp');
  await expect(lines(page)).toContainText('seq 1 300');
  await page.keyboard.press('Control+ArrowUp');
  await expect(lines(page)).toContainText('(exit 3)');
  await expect(frame(page).getByRole('button', { name: /Exit status 3/ })).toBeVisible();
  await page.keyboard.press('Control+ArrowDown');
  await frame(page).getByRole('button', { name: 'Copy the output of the chosen command' }).click();
  const copied = Array.from({ length: 300 }, (_, index) => `${index + 1}\n`).join('');
  await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe(copied);
  await page.getByLabel('Grid').check({ force: true });
  await expect(page.locator(`a.open[href$="/${id}"]`)).toBeVisible();
  await page.goto(`${daemon.url}/t/${id}`);
  await isIn(page, 'watching');
});

test('a key of a watcher is explained and not passed on', async ({ page, daemon }) => {
  const { id } = daemon.run(['cat'], '--tty');
  await openTerminal(page, daemon, id);
  await expect(frame(page)).toContainText('Nobody types, you watch');
  await frame(page).locator('.xterm').click();
  await page.keyboard.type('x');
  await expect(frame(page)).toContainText('You are watching.');
  await page.keyboard.press('Control+Enter');
  await isIn(page, 'typing');
  await expect(frame(page)).toContainText('You type');
  await enter(page, 'from the page');
  await sees(page, /from the page\s*from the page/);
  await expect(lines(page)).not.toContainText('x');
  await page.keyboard.press('Control+Enter');
  await isIn(page, 'watching');
  await enter(page, 'ignored');
  await expect(lines(page)).not.toContainText('ignored');
});

test('the way out of a terminal, and of the search', async ({ page, daemon }) => {
  await newShell(page, daemon);
  await page.keyboard.press('Tab');
  await page.keyboard.press('Control+Shift+Escape');
  await expect(frame(page).getByRole('button', { name: 'Hand back' })).toBeFocused();
  await page.keyboard.press('Control+Shift+f');
  const field = page.getByRole('textbox', { name: 'Search in the terminal' });
  await expect(field).toBeFocused();
  await page.keyboard.press('Escape');
  await expect(field).toHaveCount(0);
  await enter(page, 'echo back in the terminal');
  await sees(page, /back in the terminal\s*back in the terminal|terminal.*back in the terminal/s);
});

test('two pages: one types, the other sees it and takes over', async ({ page, daemon, browser }) => {
  const id = await newShell(page, daemon);
  const context = await browser.newContext({ viewport: { width: 1000, height: 700 } });
  const other = await context.newPage();
  await openTerminal(other, daemon, id);
  await expect(frame(other)).toContainText(/types, you watch/);
  await enter(page, 'echo seen-by-both');
  await sees(other, 'seen-by-both');
  expect(await shownSize(other)).toBe(await shownSize(page));
  await frame(other).getByRole('button', { name: 'Take over' }).click();
  await isIn(other, 'typing');
  await isIn(page, 'watching');
  await expect(frame(page)).toContainText(/took over the keyboard/);
  await enter(other, 'echo from-the-other');
  await sees(page, 'from-the-other');
  await expect.poll(() => shownSize(page)).toBe(await shownSize(other));
  await context.close();
  await expect(frame(page)).toContainText('Nobody types, you watch');
});

test('the size is that of who types, and comes back', { tag: '@full' }, async ({ page, daemon }) => {
  const { id } = daemon.run(['bash', '--norc', '-i'], '--tty');
  await openTerminal(page, daemon, id);
  expect(await shownSize(page)).toBe('80 × 24');
  await frame(page).getByRole('button', { name: 'Type here' }).click();
  await isIn(page, 'typing');
  await expect.poll(() => shownSize(page)).not.toBe('80 × 24');
  const [cols, rows] = (await shownSize(page)).split(' × ');
  await enter(page, 'stty size');
  await sees(page, `${rows} ${cols}`);
  await page.setViewportSize({ width: 1100, height: 700 });
  await expect.poll(() => shownSize(page)).not.toBe(`${cols} × ${rows}`);
  await frame(page)
    .getByRole('button', { name: /Size and letters/ })
    .click();
  await page.getByLabel('120 × 40 cells').check();
  await expect.poll(() => shownSize(page)).toBe('120 × 40');
  await page.keyboard.press('Escape');
  await frame(page).getByRole('button', { name: 'Hand back' }).click();
  await expect.poll(() => shownSize(page)).toBe('80 × 24');
});

test('the search finds and counts', async ({ page, daemon }) => {
  const { id } = daemon.run('seq -f "line %g of many" 1 500; sleep 60', '--tty');
  await openTerminal(page, daemon, id);
  await sees(page, 'line 500 of many');
  await frame(page).getByRole('button', { name: 'Search in the terminal' }).click();
  await page.keyboard.type('line 49');
  await expect(frame(page)).toContainText('11 of 11');
  await page.keyboard.press('Enter');
  await expect(frame(page)).toContainText('10 of 11');
  await frame(page).getByRole('button', { name: 'Regular expression' }).click();
  await page.getByRole('textbox', { name: 'Search in the terminal' }).fill('line (7|8) ');
  await expect(frame(page)).toContainText('2 of 2');
  await sees(page, 'line 8 of many');
  await page.getByRole('textbox', { name: 'Search in the terminal' }).fill('line (');
  await expect(page.getByRole('textbox', { name: 'Search in the terminal' })).toHaveAttribute(
    'aria-invalid',
    'true',
  );
  await page.getByRole('textbox', { name: 'Search in the terminal' }).fill('not there');
  await expect(frame(page)).toContainText('No match');
});

test('an ended session says how it ended, and keeps its lines', async ({ page, daemon }) => {
  const { id } = daemon.run('echo last words; sleep 0.5; exit 3', '--tty');
  await openTerminal(page, daemon, id);
  await isIn(page, 'ended');
  await expect(frame(page)).toContainText('Failed');
  await expect(frame(page)).toContainText('3');
  await sees(page, 'last words');
  await page.reload();
  await isIn(page, 'ended');
  await sees(page, 'last words');
  await frame(page).getByRole('link', { name: 'Open the process' }).click();
  await expect(page).toHaveURL(new RegExp(`/p/${id}$`));
});

test('the grid shows the screens as they are, and the list of ended ones', async ({ page, daemon }) => {
  daemon.run('while :; do date +tick-%S; sleep 1; done', '--tty', '--description', 'clock');
  const done = daemon.run('echo over', '--tty');
  daemon.wait(done.id);
  await open(page, daemon, '/terminals');
  await expect(page.locator('.tile .xterm-rows').first()).toContainText('tick-');
  await page.getByRole('list', { name: 'Ended' }).getByRole('link', { name: 'echo over' }).click();
  await sees(page, 'over');
  await page.goBack();
  await page.getByRole('link', { name: /^Open .*tick/ }).click();
  await isIn(page, 'watching');
  await sees(page, 'tick-');
});

test('what is no terminal says so', async ({ page, daemon }) => {
  const { id } = daemon.run(['sleep', '60']);
  await open(page, daemon, `/t/${id}`);
  await expect(frame(page).getByRole('alert')).toContainText(/terminal/);
  await open(page, daemon, '/t/zzzzzzzz');
  await expect(frame(page).getByRole('alert')).toContainText('not found');
});

test('a daemon that is killed and started again: nothing is missing, nothing twice', {
  tag: '@full',
}, async ({ page, daemon }) => {
  const { id } = daemon.run(
    'i=0; while [ $i -lt 600 ]; do i=$((i+1)); echo "row $i"; sleep 0.02; done; cat',
    '--tty',
  );
  await openTerminal(page, daemon, id);
  await frame(page).getByRole('button', { name: 'Type here' }).click();
  await isIn(page, 'typing');
  await sees(page, /row \d\d/);
  await daemon.kill();
  await isIn(page, 'broken');
  await expect(frame(page)).toContainText('The session goes on, and what is typed waits.');
  await page.keyboard.type('typed meanwhile');
  await daemon.start();
  await isIn(page, 'typing');
  // Printing them takes twelve seconds of a quiet machine.
  await sees(page, 'row 600', 60_000);
  await page.keyboard.press('Enter');
  await sees(page, 'typed meanwhile');
  await frame(page).getByRole('button', { name: 'Search in the terminal' }).click();
  await frame(page).getByRole('button', { name: 'Regular expression' }).click();
  const field = page.getByRole('textbox', { name: 'Search in the terminal' });
  await field.fill('row \\d+');
  await expect(frame(page)).toContainText('600 of 600');
});

test('nobody types for five minutes: the keyboard goes back', async ({ page, daemon }) => {
  await page.clock.install();
  const { id } = daemon.run(['cat'], '--tty');
  await openTerminal(page, daemon, id);
  await frame(page).getByRole('button', { name: 'Type here' }).click();
  await isIn(page, 'typing');
  await page.clock.fastForward(4 * 60_000 + 40_000);
  await expect(frame(page)).toContainText('Type anything to keep it');
  await page.keyboard.type('k');
  await expect(frame(page)).toContainText('goes back in');
  await expect(frame(page)).not.toContainText('Type anything to keep it');
  await page.clock.fastForward(5 * 60_000 + 2_000);
  await isIn(page, 'watching');
  await expect(frame(page)).toContainText('Nothing was typed for 5 minutes');
});

test('a paste is one where the program asked for it', async ({ page, daemon }) => {
  const { id } = daemon.run("printf '\\033[?2004h'; stty raw -echo; cat -v", '--tty');
  await openTerminal(page, daemon, id);
  await frame(page).getByRole('button', { name: 'Type here' }).click();
  await isIn(page, 'typing');
  await page.evaluate(() => navigator.clipboard.writeText('one; two'));
  await page.keyboard.press('Control+v');
  await sees(page, /\^V|\^\[\[200~one; two\^\[\[201~/);
  await page.keyboard.press('Control+Shift+v');
  await sees(page, '^[[200~one; two^[[201~');
});

test('links of the web are told and opened, others are no links; a title is text', async ({
  page,
  daemon,
}) => {
  const script = [
    "printf '\\033]8;;https://example.invalid/a?b=1\\033\\\\WEB\\033]8;;\\033\\\\ '",
    "printf '\\033]8;;javascript:document.title=1\\033\\\\BAD\\033]8;;\\033\\\\\\n'",
    "printf '\\033]2;<img src=x onerror=document.title=2>\\007'",
    'echo "<script>document.title=3</script> http://127.0.0.1:9/plain"',
    'sleep 60',
  ].join('; ');
  const { id } = daemon.run(script, '--tty');
  await openTerminal(page, daemon, id);
  await sees(page, '<script>document.title=3</script>');
  await expect(frame(page)).toContainText('<img src=x onerror=document.title=2>');
  await page.context().route('**/*example.invalid/**', (route) => route.fulfill({ body: 'there' }));
  const at = await centre(lines(page).getByText('WEB', { exact: true }));
  await page.mouse.move(at.x, at.y, { steps: 3 });
  await expect(frame(page)).toContainText('Ctrl and click opens https://example.invalid/a?b=1');
  const opened = page.context().waitForEvent('page');
  await page.keyboard.down('Control');
  await page.mouse.click(at.x, at.y);
  await page.keyboard.up('Control');
  expect((await opened).url()).toContain('https://example.invalid/a?b=1');
  await page.bringToFront();
  await page.mouse.move(at.x + 40, at.y, { steps: 3 });
  await expect(frame(page)).not.toContainText('javascript:document.title=1');
  await expect(page).not.toHaveTitle(/^[123]/);
});

test('a full-screen program, and the lines under it afterwards', async ({ page, daemon }) => {
  await newShell(page, daemon);
  await enter(page, 'echo before; seq 1 200 >numbers; less numbers');
  await sees(page, /numbers/);
  await expect(lines(page)).not.toContainText('before');
  await expect(
    page.getByRole('group', { name: 'Commands in this terminal' }).getByRole('button'),
  ).toHaveCount(0);
  await page.keyboard.type('q');
  await sees(page, 'before');
  await expect(
    page.getByRole('group', { name: 'Commands in this terminal' }).getByRole('button'),
  ).toHaveCount(1);
});

test('much output: what a page that stands still misses is told, and the end is there', {
  tag: '@full',
}, async ({ page, daemon }) => {
  const { id } = daemon.run('read go; seq 1 2000000; echo THE-END; sleep 60', '--tty');
  await openTerminal(page, daemon, id);
  await frame(page).getByRole('button', { name: 'Type here' }).click();
  await isIn(page, 'typing');
  await page.keyboard.press('Enter');
  await page.evaluate(() => {
    const until = performance.now() + 8_000;
    while (performance.now() < until);
  });
  await expect(lines(page)).toContainText('THE-END', { timeout: 40_000 });
  await sees(page, '2000000');
  await frame(page).getByRole('button', { name: 'Search in the terminal' }).click();
  await page.getByRole('textbox', { name: 'Search in the terminal' }).fill('of output are left out');
  await expect(frame(page)).toContainText(/\d+ of \d+/);
  await sees(page, /[\d,]+ bytes of output are left out/);
});

test('a paste that cannot wait for the daemon is told, and nothing around it is sent', async ({
  page,
  daemon,
}) => {
  const { id } = daemon.run(
    'stty -echo -icanon; while IFS= read -r line; do echo "got <$line>"; done',
    '--tty',
  );
  await openTerminal(page, daemon, id);
  await frame(page).getByRole('button', { name: 'Type here' }).click();
  await isIn(page, 'typing');
  await enter(page, 'first');
  await sees(page, 'got <first>');
  await daemon.kill();
  await isIn(page, 'broken');
  await page.keyboard.type('before');
  await page.locator('.xterm-helper-textarea').evaluate((field) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData('text/plain', 'x'.repeat(20_000));
    field.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
  });
  await enter(page, 'after');
  const note = 'What was typed or pasted while the connection was away was not sent.';
  await expect(frame(page)).toContainText(note);
  await daemon.start();
  await isIn(page, 'typing');
  await expect(frame(page)).toContainText(note);
  await enter(page, 'last');
  await sees(page, 'got <last>');
  await expect(lines(page)).not.toContainText(/before|after|xxx/);
  await expect(frame(page)).not.toContainText(note);
});

test('a sign-out in one window is one in each, and nothing is typed after it', async ({ page, daemon }) => {
  const { id } = daemon.run(['cat'], '--tty');
  await openTerminal(page, daemon, id);
  await frame(page).getByRole('button', { name: 'Type here' }).click();
  await isIn(page, 'typing');
  await enter(page, 'before');
  await sees(page, /before\s*before/);
  const other = await page.context().newPage();
  await other.goto(`${daemon.url}/settings/about`);
  await other.getByRole('button', { name: 'Sign out' }).click();
  await expect(other).toHaveTitle('Sign in – Ostler');
  await expect(page).toHaveTitle('Sign in – Ostler');
  await page.bringToFront();
  await enter(page, 'typed after');
  expect(daemon.ostler('logs', id)).not.toContain('typed after');
  // A sign-in counts for each, too.
  await other.goto(daemon.signInLink());
  await expect(other.getByRole('navigation').first()).toBeVisible();
  await isIn(page, 'watching');
});
