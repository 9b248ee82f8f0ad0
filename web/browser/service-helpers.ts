/** Services for browser tests: real servers, and some that misbehave. */
import { createServer } from 'node:net';
import { expect } from '@playwright/test';
import type { Daemon } from './daemon';

/** A port that nobody listens on. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

/** Python's server of files. */
export function fileServer(port: number): string[] {
  return ['python3', '-m', 'http.server', String(port), '--bind', '127.0.0.1'];
}

/** A server of Node.js that listens when a file is there. */
export function gatedServer(port: number, gate: string): string[] {
  const look = `if (require('fs').existsSync('${gate}')) { clearInterval(timer); ${serve(port)} }`;
  return ['node', '-e', `const timer = setInterval(() => { ${look} }, 50)`];
}

/** A server that does not hear SIGTERM. */
export function deafServer(port: number): string[] {
  return ['node', '-e', `process.on('SIGTERM', () => {}); ${serve(port)}`];
}

/** Ends a server as one does that finds no database. */
const FAIL_SCRIPT = `console.error('ConnectionRefusedError: localhost:6379'); process.exit(1)`;

/** A server that is ready, and fails a while later. */
export function failingServer(port: number, delayMs: number): string[] {
  return ['node', '-e', `${serve(port)}; setTimeout(() => { ${FAIL_SCRIPT} }, ${delayMs})`];
}

/** A server that is ready, and fails when {@link requestFailure} asks for it. */
export function serverThatFailsOnRequest(port: number): string[] {
  const handler = `(request, response) => { if (request.url === '/fail') { ${FAIL_SCRIPT} } response.end('ok') }`;
  return ['node', '-e', `require('http').createServer(${handler}).listen(${port}, '127.0.0.1')`];
}

/** Makes the server of {@link serverThatFailsOnRequest} at this port fail. */
export async function requestFailure(port: number): Promise<void> {
  // It exits before it answers.
  await fetch(`http://127.0.0.1:${port}/fail`).catch(() => undefined);
}

function serve(port: number): string {
  return `require('http').createServer((_, r) => r.end('ok')).listen(${port}, '127.0.0.1')`;
}

/** Starts a service by the command line, without waiting for it. */
export function startService(daemon: Daemon, name: string, command: string[], ...flags: string[]): void {
  daemon.ostler('service', 'start', '--name', name, '--no-wait', ...flags, '--', ...command);
}

/** Starts a service as the page does, so that what it starts again is of the same project. */
export async function startByRest(daemon: Daemon, name: string, argv: string[]): Promise<void> {
  const [program, ...args] = argv;
  const response = await daemon.fetch('/api/v1/services', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ name, command: { argv: { program, args } }, cwd: daemon.dir }),
  });
  expect(response.status).toBe(201);
}

interface ListedService {
  name: string;
  living: boolean;
  defined_in: string | null;
  execution: { id: string } | null;
}

export function listServices(daemon: Daemon): ListedService[] {
  return JSON.parse(daemon.ostler('service', 'ps', '--all-workspaces', '--json'));
}

/** Ends, dismisses and forgets all services, so that the next test begins with none. */
export function removeServices(daemon: Daemon): void {
  const all = listServices(daemon);
  const living = all.filter((service) => service.living).flatMap(({ execution }) => execution?.id ?? []);
  if (living.length > 0) daemon.ostler('service', 'stop', '--force', ...living);
  for (const { execution } of all) {
    if (execution) daemon.ostler('service', 'dismiss', execution.id);
  }
  for (const { name, defined_in: definedIn } of all) {
    if (definedIn === 'api') daemon.ostler('service', 'forget', name);
  }
}
