/** One execution, kept up to date by events; or its row of the history, where its output was removed. */
import { api, body } from '../../api/client';
import { ApiError } from '../../api/problem';
import type { Execution, HistoryDetail, LedgerEvent } from '../../api/types';
import { onEvent, onOpen } from '../../state/connection.svelte';
import { executions } from '../../state/executions.svelte';
import { coalesced } from '../../state/refresh';

const REFRESH_MS = 100;
/** What no event tells, such as how much was printed, is read so often while it runs, in milliseconds. */
const RELOAD_MS = 5_000;

const SILENT = new Set<LedgerEvent['event']>(['input', 'sampled', 'lease_taken']);

export class ProcessRecord {
  execution = $state.raw<Execution | null>(null);
  /** What is known of one that is gone. */
  history = $state.raw<HistoryDetail | null>(null);
  error = $state.raw<unknown>(null);
  readonly #request: () => void;

  constructor(readonly id: string) {
    // What the list knows is shown while it is read.
    this.execution = executions.find(id) ?? executions.list.find((one) => one.uuid === id) ?? null;
    this.#request = coalesced(() => this.#load(), REFRESH_MS);
  }

  /** Follows it until the returned function is called. */
  follow(): () => void {
    void this.#load();
    const ends = [
      onOpen(() => this.#request()),
      onEvent((event) => {
        const isOurs = event.id === this.id || event.uuid === this.id || event.uuid === this.execution?.uuid;
        if (isOurs && !SILENT.has(event.event)) this.#request();
      }),
    ];
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible' && this.execution?.phase !== 'finished') this.#request();
    }, RELOAD_MS);
    return () => {
      clearInterval(timer);
      for (const end of ends) end();
    };
  }

  refresh(): void {
    this.#request();
  }

  /** Takes what an answer says. */
  accept(execution: Execution): void {
    this.execution = execution;
  }

  async #load(): Promise<void> {
    const params = { path: { id: this.id } };
    try {
      this.execution = await body(api.GET('/api/v1/executions/{id}', { params }));
      this.error = null;
    } catch (error) {
      if (isNotFound(error)) await this.#loadHistory();
      else this.error = error;
    }
  }

  async #loadHistory(): Promise<void> {
    try {
      const id = this.execution?.uuid ?? this.id;
      this.history = await body(api.GET('/api/v1/history/{id}', { params: { path: { id } } }));
      this.execution = null;
      this.error = null;
    } catch (error) {
      this.error = error;
    }
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof ApiError && error.problem.status === 404;
}
