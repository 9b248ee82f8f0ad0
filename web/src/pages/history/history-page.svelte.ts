/** One page of the history, read again whenever what is asked for changes. */
import { api, body } from '../../api/client';
import type { HistoryDetail, HistoryEntry } from '../../api/types';
import { preferences } from '../../app/preferences.svelte';
import { router } from '../../app/router.svelte';
import { historyRequest, parseHistoryView } from './history-query';

/** Pages that the person came from, by the page that they led to, for the way back. */
const newerPages = new Map<string, string>();

export class HistoryList {
  readonly view = $derived(parseHistoryView(router.query));
  entries = $state.raw<HistoryEntry[] | null>(null);
  /** The position that the next page is before; `null` on the last. */
  next = $state<number | null>(null);
  /** Entries of the audit log that are not in the history yet. */
  behind = $state(0);
  error = $state.raw<unknown>(null);
  isReading = $state(false);
  #reading = 0;

  /** Reads what the address says. Called within an effect. */
  read(): void {
    const request = historyRequest(this.view, preferences.utc);
    void this.#read(request);
  }

  async #read(query: ReturnType<typeof historyRequest>): Promise<void> {
    this.#reading += 1;
    const turn = this.#reading;
    this.isReading = true;
    try {
      const page = await body(api.GET('/api/v1/history', { params: { query } }));
      // A later question is answered instead.
      if (turn !== this.#reading) return;
      this.entries = page.executions;
      this.next = page.next ?? null;
      this.behind = page.behind ?? 0;
      this.error = null;
    } catch (error) {
      if (turn === this.#reading) this.error = error;
    } finally {
      if (turn === this.#reading) this.isReading = false;
    }
  }

  /** The address of the next page; that of this one is kept for the way back. */
  get olderBefore(): string | null {
    return this.next === null ? null : String(this.next);
  }

  /** Remembers that this page led to the next. */
  leave(): void {
    if (this.next !== null) newerPages.set(String(this.next), String(this.view.before ?? ''));
  }

  /** What the page before was before; empty for the newest. */
  get newerBefore(): string {
    return newerPages.get(String(this.view.before)) ?? '';
  }
}

/** All that is known of one entry. */
export async function readHistoryDetail(id: string): Promise<HistoryDetail> {
  return body(api.GET('/api/v1/history/{id}', { params: { path: { id } } }));
}
