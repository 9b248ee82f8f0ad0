/** A daemon of its own for each test file: its directories, its process, and requests to it. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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
  #preview: import('vite').PreviewServer | null = null;
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
    return Object.entries(this.settings).flatMap(([key, value]) => ['--set', `${key}=${value}`]);
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
    if (this.#preview) return;
    this.url = banner.url;
    await this.#startPreview();
  }

  /** INTERIM: until the daemon serves the page, Vite's preview does, and passes requests on. */
  async #startPreview(): Promise<void> {
    const { preview } = await import('vite');
    const headers = { Authorization: `Bearer ${this.#token}` };
    const root = join(import.meta.dirname, '..');
    const outDir = process.env.OSTLER_WEB_DIR ?? join(root, 'dist');
    this.#preview = await preview({
      configFile: false,
      root,
      logLevel: 'error',
      build: { outDir },
      preview: {
        port: 0,
        host: '127.0.0.1',
        proxy: { '/api': { target: this.url, ws: true, headers, configure: selectProtocol } },
      },
      plugins: [
        {
          name: 'session',
          configurePreviewServer: (server) => {
            server.middlewares.use('/api/v1/web/session', (_, response) => {
              response.setHeader('Content-Type', 'application/json');
              response.end('{"token_needed":false}');
            });
            // The page names its files relative to the root, which is not where a deep address is.
            server.middlewares.use((request, response, next) => {
              const isPage = request.headers['sec-fetch-dest'] === 'document';
              if (!isPage || request.url === '/') return next();
              response.setHeader('Content-Type', 'text/html');
              response.end(
                readFileSync(join(outDir, 'index.html'), 'utf8').replaceAll('./assets/', '/assets/'),
              );
            });
          },
        },
      ],
    });
    this.url = this.#preview.resolvedUrls?.local[0]?.replace(/\/$/, '') ?? '';
  }

  /** A link that signs in. */
  signInLink(): string {
    return `${this.url}/`;
  }

  /** Ends the daemon as a crash would. Running commands go on. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** Ends the daemon and what it started, and removes its directories. */
  async close(): Promise<void> {
    const running = this.ostler('ps', '--quiet').split('\n').filter(Boolean);
    if (running.length > 0) this.ostler('stop', '--force', ...running);
    await this.#end('SIGTERM');
    await this.#preview?.close();
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

/** INTERIM: selects the subprotocol that the page asks for, and ends what the daemon ends, as the daemon will. */
function selectProtocol(proxy: import('vite').HttpProxy.ProxyServer): void {
  proxy.on('proxyRes', (answer, _, response) => {
    answer.on('close', () => response.destroy());
  });
  proxy.on('proxyReqWs', (request) => {
    request.on('upgrade', (response) => {
      response.headers['sec-websocket-protocol'] ??= 'ostler';
    });
  });
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
