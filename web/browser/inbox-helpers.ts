/** Questions to a person, as agents and commands ask them. */
import type { Interaction } from '../src/api/types';
import type { Daemon } from './daemon';

export interface Question {
  kind: Interaction['kind'];
  message: string;
  options?: string[];
  default?: string;
  timeout_ms?: number;
  execution?: string;
  secret?: boolean;
  directory?: string;
}

async function request<T>(daemon: Daemon, method: string, path: string, body?: unknown): Promise<T> {
  const response = await daemon.fetch(`/api/v1/${path}`, {
    method,
    headers: { 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const content = await response.json();
  if (!response.ok) throw new Error(content.message);
  return content;
}

/** Opens a question as a client of the API does. */
export async function ask(daemon: Daemon, question: Question): Promise<Interaction> {
  return request<Interaction>(daemon, 'POST', 'interactions', question);
}

/** A question, with its answer where it has one. */
export async function look(daemon: Daemon, id: string): Promise<Interaction> {
  return request<Interaction>(daemon, 'GET', `interactions/${id}`);
}

/** Cancels all that waits, so that one test does not see the questions of another. */
export async function clearQuestions(daemon: Daemon): Promise<void> {
  const { interactions } = await request<{ interactions: Interaction[] }>(daemon, 'GET', 'interactions');
  for (const { id } of interactions) await request(daemon, 'POST', `interactions/${id}/cancel`, {});
}

/** An agent that runs a command and has its questions answered by a person; `answer` is the tool's result. */
export async function askingAgent(
  daemon: Daemon,
  command: string | string[],
): Promise<{ answer: Promise<string>; close(): Promise<void> }> {
  const client = await daemon.mcpClient({ elicitation: {} });
  const called = client.callTool('exec', { command, input: 'open', on_prompt: 'ask' });
  const answer = called.then((result) => JSON.stringify(result));
  // A test may end before the command does.
  answer.catch(() => {});
  return { answer, close: () => client.close() };
}
