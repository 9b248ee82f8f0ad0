/** Executions of browser tests, started by REST: quicker than by the command line. */
import type { Daemon } from './daemon';

export interface Started {
  id: string;
  uuid: string;
}

interface Options {
  description?: string;
  labels?: string[];
  session?: string;
  terminal?: boolean;
}

/** Starts a script. */
export async function start(daemon: Daemon, script: string, options: Options = {}): Promise<Started> {
  const { description, labels, session, terminal } = options;
  return post(
    daemon,
    '/api/v1/executions',
    {
      command: { shell: { shell: '/bin/sh', script } },
      cwd: daemon.dir,
      description: description ?? '',
      labels: labels ?? [],
      ...(terminal ? { pty: { cols: 80, rows: 24 } } : {}),
    },
    session,
  );
}

/** Starts so many of a program that ends at once, a few at a time. */
export async function startMany(daemon: Daemon, count: number, labels: string[]): Promise<void> {
  let left = count;
  const worker = async () => {
    while (left > 0) {
      left -= 1;
      const command = { argv: { program: '/bin/true', args: [String(left)] } };
      await post(daemon, '/api/v1/executions', { command, cwd: daemon.dir, labels, isolation: 'basic' });
    }
  };
  await Promise.all(Array.from({ length: 16 }, worker));
}

export async function post<T>(daemon: Daemon, path: string, body: unknown, session?: string): Promise<T> {
  const response = await daemon.fetch(path, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      ...(session === undefined ? {} : { 'Ostler-Session': session }),
    },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response.json() as Promise<T>;
}

/** The status of an execution, as REST tells it. */
export async function statusOf(daemon: Daemon, id: string): Promise<string> {
  const response = await daemon.fetch(`/api/v1/executions/${id}`);
  if (!response.ok) return String(response.status);
  const execution = (await response.json()) as { status: string; paused: boolean };
  return execution.paused ? 'paused' : execution.status;
}

/** Waits until one has ended. */
export async function ended(daemon: Daemon, id: string): Promise<void> {
  await post(daemon, `/api/v1/executions/${id}/wait`, { until: 'exit', at_most_ms: 20_000 });
}
