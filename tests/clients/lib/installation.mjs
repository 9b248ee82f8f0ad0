// One installation of the binary with its own directories, sockets and state.

import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';

const ROOT = path.resolve(import.meta.dirname, '../../..');
export const BINARY = process.env.OSTLER_BIN ?? path.join(ROOT, 'target/release/ostler');

export class Installation {
  constructor() {
    if (!existsSync(BINARY)) throw new Error(`${BINARY} is not built: cargo build --release`);
    // Short: a socket's path has 107 bytes.
    this.dir = mkdtempSync(path.join(tmpdir(), 'ostler-'));
    for (const name of ['state', 'run', 'config', 'home', 'work']) {
      mkdirSync(this.at(name), { mode: 0o700 });
      chmodSync(this.at(name), 0o700);
    }
  }

  at(...names) {
    return path.join(this.dir, ...names);
  }

  get env() {
    return {
      PATH: '/usr/local/bin:/usr/bin:/bin',
      LANG: 'C.UTF-8',
      HOME: this.at('home'),
      XDG_STATE_HOME: this.at('state'),
      OSTLER_STATE_DIR: this.at('state', 'ostler'),
      OSTLER_RUNTIME_DIR: this.at('run', 'ostler'),
      XDG_RUNTIME_DIR: this.at('run'),
      XDG_CONFIG_HOME: this.at('config'),
    };
  }

  // The command with which a client starts a stdio proxy.
  get stdioProxy() {
    return { command: BINARY, args: ['mcp'], env: this.env, cwd: this.at('work') };
  }

  // The daemon in the foreground, with an HTTP listener; returns its address.
  async serve(...args) {
    const words = ['serve', '--port', '0', ...args];
    this.server = spawn(BINARY, words, { env: this.env, cwd: this.at('work'), stdio: ['ignore', 'pipe', 'inherit'] });
    this.ended = new Promise((resolve) => this.server.once('exit', resolve));
    const lines = createInterface({ input: this.server.stdout });
    this.base = await new Promise((resolve, reject) => {
      lines.on('line', (line) => {
        const found = line.match(/http:\/\/[\w.:[\]-]+:\d+/);
        if (found) resolve(found[0]);
      });
      this.server.once('exit', (code) => reject(new Error(`serve ended with ${code} before it named its address`)));
    });
    return this.base;
  }

  // One REST request to the daemon's own socket.
  rest(method, route, body) {
    const socketPath = this.at('run', 'ostler', 'daemon.sock');
    const headers = body ? { 'content-type': 'application/json' } : {};
    return new Promise((resolve, reject) => {
      const request = http.request({ socketPath, method, path: route, headers }, (answer) => {
        const parts = [];
        answer.on('data', (part) => parts.push(part));
        answer.on('end', () => {
          const text = Buffer.concat(parts).toString();
          resolve(text.trim() ? JSON.parse(text) : undefined);
        });
      });
      request.on('error', reject);
      request.end(body ? JSON.stringify(body) : undefined);
    });
  }

  // Ends the commands, the daemon, and removes the directory.
  async close() {
    try {
      const running = await this.rest('GET', '/api/v1/executions?status=running');
      for (const { id } of running.executions) {
        await this.rest('POST', `/api/v1/executions/${id}/stop`, { force: true });
      }
      const { pid } = await this.rest('GET', '/api/v1/health');
      await this.rest('POST', '/api/v1/shutdown');
      await until(() => !isAlive(pid), 'the end of the daemon');
      if (this.server) await this.ended;
    } finally {
      if (this.server && this.server.exitCode === null) this.server.kill('SIGKILL');
      rmSync(this.dir, { recursive: true, force: true });
    }
  }
}

export function isAlive(pid) {
  try {
    const state = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)[0];
    return !'ZX'.includes(state);
  } catch {
    return false;
  }
}

// Waits until `fact()` is true and returns its value; for conditions without a notification.
export async function until(fact, what, seconds = 20) {
  const deadline = Date.now() + seconds * 1000;
  for (;;) {
    const answer = await fact();
    if (answer) return answer;
    if (Date.now() > deadline) throw new Error(`${what} did not come within ${seconds} s`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
