/** Pictures of each page in both themes, with commands that look like those of a working day. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import type { Daemon } from './daemon';
import { post } from './executions';
import { expect, open, test } from './fixture';

const DIRECTORY = join(import.meta.dirname, '../../docs/images');
const WIDE = { width: 1440, height: 900 };
const PHONE = { width: 390, height: 844 };

/** Programs that print what those of their name would. */
const PROGRAMS: Record<string, string> = {
  cargo: `
import random, sys, time
random.seed(7)
green, red, cyan, pink, bold, off = (f"\\x1b[{n}m" for n in (32, 31, 36, 35, 1, 0))
crates = ["ledger-core", "ledger-api", "ledger-cli", "ledger-store"]
modules = ["money", "auth", "import", "compaction", "wal", "routes::invoices"]
names = ["adds_without_loss", "rounds_to_even", "refuses_an_expired_token", "reads_crlf", "pages_by_cursor"]
print(f"    {green}Finished{off} test profile in 4.81s", file=sys.stderr, flush=True)
for n in range(1, 100_000):
    time.sleep(0.0005 if n < 400 else 0.2)
    head = f"        {green}PASS{off} [{random.random():7.3f}s]"
    if n in (260, 391):
        head = f"        {red}FAIL{off} [{random.random():7.3f}s]"
    where = f"{pink}{random.choice(crates)}{off} {cyan}{random.choice(modules)}::tests::{off}{bold}{random.choice(names)}{off}"
    print(head, where, flush=True)
    if n in (260, 391):
        print("thread 'wal::tests::replays_after_torn_tail' panicked at crates/ledger-store/src/wal.rs:318:9:", file=sys.stderr)
        print("assertion \`left == right\` failed: entries after replay\\n  left: 1023\\n right: 1024", file=sys.stderr, flush=True)
`,
  pytest: `
import sys
print("tests/billing/test_invoices.py ....F.....")
print("E       AssertionError: assert Decimal('10.00') == Decimal('10.01')")
print("FAILED tests/billing/test_invoices.py::test_total - AssertionError")
print("1 failed, 9 passed in 1.31s")
sys.exit(1)
`,
  terraform: `
print("Plan: 2 to add, 1 to change, 0 to destroy.\\n")
input("Do you want to perform these actions?\\n  Only 'yes' is accepted. Enter a value: ")
`,
  npm: `
from http.server import HTTPServer, SimpleHTTPRequestHandler
server = HTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler)
print(f"  VITE v8.3.8  ready in 312 ms\\n\\n  Local:   http://localhost:{server.server_port}/", flush=True)
server.serve_forever()
`,
  train: `
import time
held = []
while True:
    held.append(bytearray(3_000_000)) if len(held) < 60 else None
    end = time.time() + 0.4
    while time.time() < end: pass
    time.sleep(0.3)
`,
  git: 'print("Already up to date.")',
};

function installPrograms(daemon: Daemon): string {
  const bin = join(daemon.dir, 'bin');
  mkdirSync(bin);
  for (const [name, source] of Object.entries(PROGRAMS)) {
    const file = join(bin, name);
    writeFileSync(file, `#!/usr/bin/env python3\n${source}`);
    chmodSync(file, 0o755);
  }
  return `PATH=${bin}:${process.env.PATH ?? ''}`;
}

/** What runs and ran while the pictures are taken. */
async function startWork(daemon: Daemon): Promise<Record<string, string>> {
  const path = installPrograms(daemon);
  const run = (line: string, description: string, ...flags: string[]) =>
    daemon.run(line.split(' '), '-e', path, '--description', description, ...flags).id;
  for (let n = 0; n < 6; n += 1) run('git pull --rebase', '', '-l', 'ledger');
  run('pytest -q tests/billing', 'Billing regression', '-l', 'ci');
  const tests = run(
    'cargo nextest run --workspace',
    'All tests before the merge',
    '-l',
    'ci',
    '-l',
    'ledger',
  );
  run('train --epochs 40', 'Nightly ranking model', '-l', 'ml');
  const apply = run('terraform apply -target=module.cdn', 'Roll out the CDN rules', '-l', 'prod', '--tty');
  daemon.ostler('service', 'start', '--name', 'web', '-e', path, '--', 'npm', 'run', 'dev');
  daemon.ostler('service', 'start', '--name', 'files', '--', 'python3', '-m', 'http.server', '0');
  await post(daemon, '/api/v1/interactions', {
    kind: 'confirmation',
    message: 'Do you want to perform these actions?',
    execution: apply,
    default: 'no',
    timeout_ms: 300_000,
  });
  const shell = await post<{ id: string }>(daemon, '/api/v1/shells', { cwd: daemon.dir, kind: 'bash' });
  await post(daemon, `/api/v1/executions/${shell.id}/shell/run`, {
    script: 'ls --color=always /usr; false',
  });
  await post(daemon, `/api/v1/executions/${shell.id}/shell/run`, { script: 'seq -s " " 1 20' });
  return { tests, shell: shell.id };
}

async function picture(page: Page, name: string): Promise<void> {
  for (const theme of ['light', 'dark']) {
    await page.evaluate((value) => {
      document.documentElement.dataset['theme'] = value;
    }, theme);
    await page.screenshot({ path: join(DIRECTORY, `${name}-${theme}.png`), animations: 'disabled' });
  }
}

test('pictures of each page', async ({ page, daemon }) => {
  const { tests, shell } = await startWork(daemon);
  await page.setViewportSize(WIDE);
  await open(page, daemon, `/p/${tests}`);
  await expect(page.getByRole('log')).toContainText('PASS');
  await page.keyboard.press('e');
  await picture(page, 'process');
  const pages: [path: string, name: string, ready: string | RegExp][] = [
    ['/processes', 'processes', 'cargo'],
    [`/t/${shell}`, 'terminal', /types|watch/i],
    ['/services', 'services', 'npm'],
    ['/inbox', 'inbox', 'terraform'],
    ['/templates', 'templates', 'Generate documentation'],
    ['/history', 'history', 'pytest'],
    ['/audit', 'audit', 'cargo'],
    ['/resources', 'resources', 'train'],
    ['/settings', 'settings', 'Français'],
  ];
  for (const [path, name, ready] of pages) {
    await page.goto(daemon.url + path);
    await expect(page.getByRole('main')).toContainText(ready);
    await page.evaluate(() => document.fonts.ready);
    await picture(page, name);
  }
  await page.setViewportSize(PHONE);
  await page.goto(`${daemon.url}/processes`);
  await expect(page.getByRole('main')).toContainText('cargo');
  await picture(page, 'processes-phone');
});
