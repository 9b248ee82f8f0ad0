/** Questions to a person: in the strip, in the inbox, by notifications, and races for the answer. */
import type { Page } from '@playwright/test';
import { expectAccessible, expectNoOverflow, lengthenTexts } from './axe';
import { Daemon } from './daemon';
import { start } from './executions';
import { expect, open, test } from './fixture';
import { ask, askingAgent, clearQuestions, look } from './inbox-helpers';

const strip = (page: Page) => page.getByRole('region', { name: 'A question that waits for an answer' });
const detail = (page: Page) => page.getByRole('article', { name: 'Question' });
const waiting = (page: Page) => page.getByRole('list', { name: 'Waiting' });
const answered = (page: Page) => page.getByRole('list', { name: 'Ended lately' });

test.beforeEach(async ({ daemon }) => clearQuestions(daemon));

test('a command asks, and is answered by three keys in the strip', async ({ page, daemon }) => {
  await open(page, daemon, '/history');
  const agent = await askingAgent(daemon, 'printf "Continue? [Y/n] "; read a; echo "got $a"');
  await expect(strip(page)).toContainText('Continue? [Y/n]');
  await expect(strip(page)).toContainText(/Answers itself with “Y” in \d:\d\d/);
  await page.keyboard.press('a');
  const yes = strip(page).getByRole('button', { name: 'Y default' });
  await expect(yes).toBeFocused();
  await expect(yes).toHaveAccessibleDescription(/Continue\? \[Y\/n\].*Answers itself with “Y” in/s);
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  expect(await agent.answer).toContain('got n');
  await expect(strip(page)).toContainText('You answered');
  await expect(strip(page)).toHaveCount(0);
  await agent.close();
});

test('the default is two keys away, and the focus comes back', async ({ page, daemon }) => {
  const { id } = await ask(daemon, {
    kind: 'choice_selection',
    message: 'Which database?',
    options: ['one', 'two', 'three'],
    default: 'two',
  });
  await open(page, daemon, '/history');
  const jump = page.getByRole('button', { name: /Jump to/ });
  await jump.focus();
  await page.keyboard.press('a');
  await page.keyboard.press('Enter');
  await expect.poll(async () => (await look(daemon, id)).end?.answer).toBe('two');
  await expect(jump).toBeFocused();
});

test('a text is typed in the strip; what is wrong is said there', async ({ page, daemon }) => {
  const agent = await askingAgent(daemon, ['python3', '-c', 'print("hi", input("Your name: "))']);
  await open(page, daemon, '/history');
  await expect(strip(page)).toContainText('Your name:');
  await page.keyboard.press('a');
  await page.keyboard.type('Ann of the a');
  await page.keyboard.press('Enter');
  expect(await agent.answer).toContain('hi Ann of the a');
  await agent.close();
  await ask(daemon, { kind: 'input_request', message: 'Not empty' });
  await expect(strip(page)).toContainText('Not empty');
  await strip(page).getByRole('button', { name: 'Send' }).click();
  await expect(strip(page).getByRole('alert')).toContainText('not empty');
});

test('a secret is typed unseen and is nowhere afterwards', async ({ page, daemon }) => {
  const { id } = daemon.run(
    [
      'bash',
      '-c',
      'echo ready; read -s -p "Password: " p; echo; printf "length %d\\n" "$(printf %s "$p" | wc -c)"; sleep 60',
    ],
    '--tty',
  );
  const question = await ask(daemon, {
    kind: 'input_request',
    message: 'Password:',
    execution: id,
    secret: true,
  });
  await open(page, daemon, `/inbox/${question.id}`);
  await expect(detail(page)).toContainText('Password:');
  const field = detail(page).getByLabel('Secret');
  await expect(field).toHaveAttribute('type', 'password');
  await page.keyboard.press('a');
  await expect(field).toBeFocused();
  await page.keyboard.type('hunter22');
  await page.keyboard.press('Enter');
  await expect(detail(page)).toContainText('You answered');
  await expect.poll(() => daemon.ostler('logs', id)).toContain('length 8');
  expect(daemon.ostler('logs', id)).not.toContain('hunter22');
  expect(await page.content()).not.toContain('hunter22');
});

test('the inbox shows what led to a question, live', async ({ page, daemon }) => {
  const { id } = daemon.run(
    'for i in 1 2 3 4 5 6 7 8; do echo "line $i"; sleep 0.4; done; read a; echo "got $a"',
    '--tty',
  );
  const { id: asked } = await ask(daemon, { kind: 'confirmation', message: 'Go on?', execution: id });
  await open(page, daemon, '/inbox');
  await expect(detail(page)).toContainText('Go on?');
  await expect(detail(page).locator('pre')).toContainText('line 8');
  await detail(page).getByRole('link', { name: 'Open its terminal' }).click();
  await expect(page).toHaveURL(new RegExp(`/t/${id}$`));
  await page.goBack();
  await detail(page).getByRole('button', { name: 'yes', exact: true }).click();
  await expect(detail(page)).toContainText('You answered');
  await expect.poll(() => daemon.ostler('logs', id)).toContain('got yes');
  // The card closes by itself; the answered one can be opened again.
  await expect(detail(page)).toHaveCount(0, { timeout: 8_000 });
  await answered(page)
    .getByRole('link', { name: /Go on\?/ })
    .first()
    .click();
  await expect(page).toHaveURL(new RegExp(`/inbox/${asked}$`));
  await expect(detail(page)).toContainText('You answered');
});

test('another answers first: the card says so and closes', async ({ page, daemon }) => {
  const { id } = await ask(daemon, { kind: 'confirmation', message: 'Who is first?' });
  await open(page, daemon, `/inbox/${id}`);
  await expect(detail(page)).toContainText('Who is first?');
  await expect(waiting(page).getByRole('link')).toHaveCount(1);
  daemon.ostler('interactions', 'answer', id, 'no');
  await expect(detail(page)).toContainText(/Answered by uid:\d+/);
  await expect(detail(page)).toContainText('no');
  await expect(detail(page).getByRole('button', { name: 'yes' })).toHaveCount(0);
  await expect(page).toHaveURL(/\/inbox$/, { timeout: 8_000 });
  await expect(answered(page)).toContainText('Who is first?');
});

test('another answers first: the strip says so, and the next question comes', { tag: '@full' }, async ({
  page,
  daemon,
}) => {
  const first = await ask(daemon, { kind: 'confirmation', message: 'The first?', timeout_ms: 60_000 });
  const second = await ask(daemon, { kind: 'confirmation', message: 'The second?', timeout_ms: 600_000 });
  await open(page, daemon, '/history');
  await expect(strip(page)).toContainText('The first?');
  await expect(strip(page)).toContainText('1 more question');
  // One that ends earlier does not take the place of the one that is shown.
  await ask(daemon, { kind: 'confirmation', message: 'The hurried?', timeout_ms: 5_000 });
  await expect(strip(page)).toContainText('2 more questions');
  await expect(strip(page)).toContainText('The first?');
  daemon.ostler('interactions', 'answer', first.id, 'yes');
  await expect(strip(page)).toContainText(/Answered by uid:\d+/);
  await expect(strip(page)).toContainText(/The (hurried|second)\?/, { timeout: 8_000 });
  await expect(strip(page)).toContainText('The second?', { timeout: 15_000 });
  daemon.ostler('interactions', 'cancel', second.id);
  await expect(strip(page)).toContainText('Cancelled');
});

/** Runs one command after the other, as a busy machine does, until the returned function is called. */
function keepBusy(daemon: Daemon): () => Promise<void> {
  let goesOn = true;
  const runs = (async () => {
    while (goesOn) {
      await start(daemon, 'true');
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
  })();
  return () => {
    goesOn = false;
    return runs;
  };
}

test('an ended question makes room for the next one, also while commands end all the time', async ({
  page,
  browser,
  daemon,
}) => {
  const first = await ask(daemon, { kind: 'confirmation', message: 'The first?', timeout_ms: 60_000 });
  await ask(daemon, { kind: 'confirmation', message: 'The second?', timeout_ms: 600_000 });
  const elsewhere = await browser.newContext({ locale: 'en-GB' });
  const inbox = await elsewhere.newPage();
  await open(page, daemon, '/history');
  await open(inbox, daemon, `/inbox/${first.id}`);
  await expect(strip(page)).toContainText('The first?');
  await expect(detail(inbox)).toContainText('The first?');
  const rest = keepBusy(daemon);
  try {
    daemon.ostler('interactions', 'answer', first.id, 'yes');
    await expect(strip(page)).toContainText('The second?', { timeout: 8_000 });
    await expect(inbox).toHaveURL(/\/inbox$/, { timeout: 8_000 });
  } finally {
    await rest();
    await elsewhere.close();
  }
});

test('a late answer is refused and told', async ({ page, daemon }) => {
  const { id } = await ask(daemon, { kind: 'confirmation', message: 'Raced?' });
  await open(page, daemon, `/inbox/${id}`);
  await expect(detail(page)).toContainText('Raced?');
  // The page does not hear of it before its own answer is on its way.
  await page.route('**/api/v1/interactions?**', (route) => route.abort());
  daemon.ostler('interactions', 'answer', id, 'no');
  await detail(page).getByRole('button', { name: 'yes', exact: true }).click();
  await expect(detail(page).getByRole('alert')).toContainText(/answered/);
  expect((await look(daemon, id)).end?.answer).toBe('no');
});

test('nobody answers: the default is taken, or nothing', { tag: '@full' }, async ({ page, daemon }) => {
  const { id } = await ask(daemon, {
    kind: 'confirmation',
    message: 'By default?',
    default: 'no',
    timeout_ms: 4_000,
  });
  await open(page, daemon, `/inbox/${id}`);
  await expect(detail(page)).toContainText(/Answers itself with “no” in 0:0\d/);
  await expect(detail(page)).toContainText('Nobody answered in time, the default was taken');
  await expect(detail(page)).toContainText('no');
  const other = await ask(daemon, { kind: 'confirmation', message: 'Without?', timeout_ms: 2_000 });
  await page.goto(`${daemon.url}/inbox/${other.id}`);
  await expect(detail(page)).toContainText('Nobody answered in time');
});

test('options, a file, and a question that is cancelled', async ({ page, daemon }) => {
  const agent = await askingAgent(daemon, [
    'python3',
    '-c',
    'print("1) red\\n2) green\\n3) blue\\n4) black"); print("it is", input("Pick one [2]: "))',
  ]);
  await open(page, daemon, '/inbox');
  await detail(page).getByRole('button', { name: '3) blue' }).click();
  expect(await agent.answer).toContain('it is 3');
  await agent.close();
  daemon.ostler('run', '--', 'sh', '-c', 'echo text > chosen.txt');
  const file = await ask(daemon, { kind: 'file_selection', message: 'Which file?', directory: daemon.dir });
  await page.goto(`${daemon.url}/inbox/${file.id}`);
  await detail(page).getByLabel('Path of a file').fill('/etc/passwd');
  await detail(page).getByRole('button', { name: 'Send' }).click();
  await expect(detail(page).getByRole('alert')).toContainText(daemon.dir);
  await detail(page).getByLabel('Path of a file').fill(`${daemon.dir}/chosen.txt`);
  await page.keyboard.press('Enter');
  await expect(detail(page)).toContainText('You answered');
  await expect.poll(async () => (await look(daemon, file.id)).end?.answer).toContain('chosen.txt');
  const last = await ask(daemon, { kind: 'input_request', message: 'Never mind' });
  await page.goto(`${daemon.url}/inbox/${last.id}`);
  await detail(page).getByRole('button', { name: 'Cancel the question' }).click();
  await expect(detail(page)).toContainText('You cancelled the question');
  expect((await look(daemon, last.id)).status).toBe('cancelled');
});

test('the browser tells of a question after one click, without what is secret', async ({ page, daemon }) => {
  await page.addInitScript(() => {
    const told: string[] = [];
    class Told {
      static permission = 'default';
      static requestPermission(): Promise<string> {
        Told.permission = 'granted';
        return Promise.resolve('granted');
      }
      onclick: (() => void) | null = null;
      constructor(title: string, { body }: { body: string }) {
        told.push(`${title}: ${body}`);
      }
      close(): void {
        told.push('closed');
      }
    }
    Object.assign(window, { Notification: Told, told });
    Document.prototype.hasFocus = () => false;
  });
  await open(page, daemon, '/inbox');
  await expect(page.getByText('Nobody is waiting for you.').first()).toBeVisible();
  await page.getByRole('button', { name: 'Notify me' }).click();
  await expect(page.getByRole('button', { name: 'Stop notifying me' })).toBeVisible();
  const { id } = daemon.run(['sh', '-c', 'exec sleep 300 # --token=hunter22'], '--tty');
  const { id: asked } = await ask(daemon, {
    kind: 'input_request',
    message: 'Key:',
    execution: id,
    secret: true,
  });
  const told = () => page.evaluate(() => (window as unknown as { told: string[] }).told);
  await expect.poll(told).toEqual(['sh asks: It asks for a secret.']);
  daemon.ostler('interactions', 'cancel', asked);
  await expect.poll(told).toEqual(['sh asks: It asks for a secret.', 'closed']);
});

test('an approval of the command policy', async ({ page }) => {
  const daemon = new Daemon({ 'policy.mode': 'default' });
  await daemon.start();
  try {
    const agent = await askingAgent(daemon, ['curl', '--max-time', '1', 'http://127.0.0.1:9/']);
    await open(page, daemon, '/inbox');
    await expect(detail(page)).toContainText('The command policy asks a person before this runs.');
    await expect(detail(page)).toContainText('ask.network');
    await expect(detail(page)).toContainText('curl --max-time 1 http://127.0.0.1:9/');
    await detail(page).getByRole('button', { name: 'Allow once' }).click();
    expect(await agent.answer).toContain('curl: (7)');
    await agent.close();
    const refused = await askingAgent(daemon, ['curl', 'http://127.0.0.1:9/refused']);
    await expect(waiting(page).getByRole('link')).toHaveCount(1);
    await open(page, daemon, '/history');
    await strip(page).getByRole('button', { name: 'Refuse' }).click();
    expect(await refused.answer).toContain('security_error');
    await refused.close();
  } finally {
    await daemon.close();
  }
});

test('no serious finding, and longer texts fit', async ({ page, daemon }) => {
  const { id } = daemon.run('echo some output; read a', '--tty');
  await ask(daemon, {
    kind: 'choice_selection',
    message: 'A question that is quite long, so that it takes more than a line on a telephone?',
    options: ['a first option that is long', 'a second option', 'a third one'],
    default: 'a second option',
    execution: id,
  });
  await ask(daemon, { kind: 'input_request', message: 'Password:', execution: id, secret: true });
  const gone = await ask(daemon, { kind: 'confirmation', message: '<img src=x onerror=alert(1)>' });
  daemon.ostler('interactions', 'answer', gone.id, 'yes');
  for (const path of ['/inbox', `/inbox/${gone.id}`, '/history']) {
    await open(page, daemon, path);
    if (path === '/history') await expect(strip(page)).toBeVisible();
    else await expect(detail(page)).toBeVisible();
    await expectAccessible(page);
    await lengthenTexts(page);
    await expectNoOverflow(page);
  }
});

test('a list that could not be read again is not told as an empty one, and is read again', async ({
  page,
  daemon,
}) => {
  await open(page, daemon, '/inbox');
  const main = page.getByRole('main');
  await expect(main).toContainText('Nobody is waiting for you.');
  let fails = true;
  await page.route('**/api/v1/interactions?*', (route) =>
    fails ? route.fulfill({ status: 500, json: {} }) : route.continue(),
  );
  await ask(daemon, { kind: 'input_request', message: 'Seen late?' });
  await expect(main).toContainText('This list is not current.');
  await expect(main).not.toContainText('Nobody is waiting for you.');
  await expectAccessible(page);
  fails = false;
  await expect(waiting(page)).toContainText('Seen late?');
  await expect(main).not.toContainText('This list is not current.');
});

test('an answer that nobody takes is told in the words of the page', async ({ page, daemon }) => {
  await open(page, daemon, '/history');
  await ask(daemon, { kind: 'input_request', message: 'Is anybody there?' });
  await strip(page).getByRole('textbox').fill('yes');
  await daemon.kill();
  await page.keyboard.press('Enter');
  await expect(strip(page).getByRole('alert')).toHaveText(/The daemon does not answer/);
  await daemon.start();
});

test('the time that is left is that of the daemon, whatever the clock of the browser says', async ({
  page,
  daemon,
}) => {
  await page.clock.install({ time: Date.now() + 600_000 });
  await open(page, daemon, '/history');
  await ask(daemon, { kind: 'input_request', message: 'How long?', timeout_ms: 300_000 });
  await expect(strip(page)).toContainText(/Ends in (4:[345]\d|5:0\d)/);
  const { id } = daemon.run('sleep 30');
  await page.goto(`${daemon.url}/p/${id}`);
  await expect(page.getByRole('main')).toContainText('sleep 30');
  await expect(page.locator('.length .elapsed')).toHaveText(/^(\d+(\.\d+)? ?m?s|–)$/);
});
