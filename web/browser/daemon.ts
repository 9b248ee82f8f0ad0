/** A daemon of its own for each test file: its directories, its process, and requests to it. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { McpClient } from './mcp-client';

/** How long a daemon may take to serve, in milliseconds. */
const START_MS = 30_000;

export interface StartedExecution {
  id: string;
  uuid: string;
}

/** A program and its arguments, or a script. */
export type CommandLine = string[] | string;

export class Daemon {
  readonly dir: string;
  #process: ChildProcess | null = null;
  #port = 0;
  #token = '';
  /** The address of the page and of REST. */
  url = '';

  constructor(readonly settings: Record<string, string> = {}) {
    this.dir = mkdtempSync(join(tmpdir(), 'ostler-web-'));
  }

  get #environment(): NodeJS.ProcessEnv {
    return {
      PATH: process.env.PATH,
      HOME: this.dir,
      LANG: 'C.UTF-8',
      XDG_STATE_HOME: join(this.dir, 'state'),
      XDG_RUNTIME_DIR: join(this.dir, 'run'),
      XDG_CONFIG_HOME: join(this.dir, 'config'),
    };
  }

  get #settings(): string[] {
    const page = process.env.OSTLER_WEB_DIR ?? join(import.meta.dirname, '../dist');
    const settings = { 'http.web_directory': resolve(page), ...this.settings };
    return Object.entries(settings).flatMap(([key, value]) => ['--set', `${key}=${value}`]);
  }

  /** Serves, on the port of before where there was one. */
  async start(): Promise<void> {
    const child = spawn(binary(), ['serve', '--port', String(this.#port), ...this.#settings], {
      cwd: this.dir,
      env: this.#environment,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#process = child;
    const banner = await readBanner(child);
    this.#token ||= banner.token;
    this.#port = Number(new URL(banner.url).port);
    this.url = banner.url;
  }

  /** A link that signs in, once. */
  signInLink(): string {
    return JSON.parse(this.ostler('token', 'link', '--json')).url;
  }

  /** A request by a program, with a token of its own. */
  fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    headers.set('Authorization', `Bearer ${this.#token}`);
    return fetch(this.url + path, { ...init, headers });
  }

  /** Ends the daemon as a crash would. Running commands go on. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** Runs `act` while the daemon is stopped by a signal: connections stay open, and nothing answers. */
  async whileStopped(act: () => Promise<void>): Promise<void> {
    this.#process?.kill('SIGSTOP');
    try {
      await act();
    } finally {
      this.#process?.kill('SIGCONT');
    }
  }

  /** Ends the daemon and what it started, and removes its directories. */
  async close(): Promise<void> {
    const running = this.ostler('ps', '--quiet').split('\n').filter(Boolean);
    if (running.length > 0) this.ostler('stop', '--force', ...running);
    await this.#end('SIGTERM');
    rmSync(this.dir, { recursive: true, force: true });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process;
    this.#process = null;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill(signal);
    await ended;
  }

  /** The output of a command of the command line. */
  ostler(...args: string[]): string {
    return execFileSync(binary(), args, { cwd: this.dir, env: this.#environment, encoding: 'utf8' });
  }

  /** A client of MCP with a session of its own. */
  async mcpClient(capabilities: Record<string, unknown> = {}): Promise<McpClient> {
    const client = new McpClient(binary(), this.#environment, this.dir);
    await client.initialize(capabilities);
    return client;
  }

  /** Starts a command in the background, by the command line. */
  run(command: CommandLine, ...flags: string[]): StartedExecution {
    const argv = typeof command === 'string' ? ['sh', '-c', command] : command;
    const id = this.ostler('run', '-d', ...flags, '--', ...argv).trim();
    return this.info(id);
  }

  info(id: string): StartedExecution & Record<string, unknown> {
    return JSON.parse(this.ostler('info', '--json', id));
  }

  /** Waits until an execution has ended. */
  wait(id: string): void {
    try {
      this.ostler('wait', id);
    } catch {
      // It ended with another status than 0.
    }
  }
}

function binary(): string {
  const path = process.env.OSTLER_BIN;
  if (!path) throw new Error('OSTLER_BIN names the binary under test');
  return path;
}

async function readBanner(child: ChildProcess): Promise<{ url: string; token: string }> {
  const timer = setTimeout(() => child.kill('SIGKILL'), START_MS);
  const banner = { url: '', token: '' };
  if (!child.stdout) throw new Error('no banner');
  for await (const line of createInterface({ input: child.stdout })) {
    const http = /^\s*http\s+(\S+)\/mcp/.exec(line);
    if (http?.[1]) banner.url = http[1];
    banner.token ||= /^\s*token\s+(ostler_\S+)/.exec(line)?.[1] ?? '';
    if (line.startsWith('Ctrl-C')) break;
  }
  clearTimeout(timer);
  child.stdout.resume();
  if (!banner.url) throw new Error('the daemon did not serve');
  return banner;
}
