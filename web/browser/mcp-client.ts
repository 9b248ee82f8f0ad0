/** A client of MCP over the standard streams of `ostler mcp`, as far as the tests of the dashboard need one. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

export class McpClient {
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #waiting = new Map<number, (answer: { result?: unknown; error?: unknown }) => void>();
  #id = 0;

  constructor(binary: string, environment: NodeJS.ProcessEnv, cwd: string) {
    this.#process = spawn(binary, ['mcp'], { env: environment, cwd });
    createInterface({ input: this.#process.stdout }).on('line', (line) => {
      const message = JSON.parse(line);
      // Requests of the server, such as a form for a person, stay unanswered.
      if (message.method !== undefined) return;
      this.#waiting.get(message.id)?.(message);
      this.#waiting.delete(message.id);
    });
  }

  /** `capabilities`: those of the client besides the one that shows apps. */
  async initialize(capabilities: Record<string, unknown> = {}): Promise<void> {
    await this.request('initialize', {
      protocolVersion: '2025-11-25',
      capabilities: {
        ...capabilities,
        extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } },
      },
      clientInfo: { name: 'browser-tests', version: '1' },
    });
    this.#send({ jsonrpc: '2.0', method: 'notifications/initialized' });
  }

  async request(method: string, params: unknown): Promise<unknown> {
    this.#id += 1;
    const id = this.#id;
    const answer = new Promise<{ result?: unknown; error?: unknown }>((resolve) =>
      this.#waiting.set(id, resolve),
    );
    this.#send({ jsonrpc: '2.0', id, method, params });
    const { result, error } = await answer;
    if (error) throw new Error(JSON.stringify(error));
    return result;
  }

  callTool(name: string, parameters: Record<string, unknown>): Promise<unknown> {
    return this.request('tools/call', { name, arguments: parameters });
  }

  async close(): Promise<void> {
    const ended = new Promise((resolve) => this.#process.once('exit', resolve));
    this.#process.stdin.end();
    await ended;
  }

  #send(message: unknown): void {
    if (this.#process.stdin.writableEnded) throw new Error('the client is closed');
    this.#process.stdin.write(`${JSON.stringify(message)}\n`);
  }
}
