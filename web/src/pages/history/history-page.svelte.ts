/** One page of the history, read again whenever what is asked for changes. */
import { api, body } from '../../api/client';
import type { HistoryDetail, HistoryEntry } from '../../api/types';
import { preferences } from '../../app/preferences.svelte';
import { router } from '../../app/router.svelte';
import { onEvent, onOpen } from '../../state/connection.svelte';
import { coalesced, forEachLimited } from '../../state/refresh';
import { historyRequest, parseHistoryView } from './history-query';
import { runningIds, withNewer } from './history-row';
import { WayBack } from './way-back';

const REFRESH_MS = 150;
const CONCURRENT_READS = 6;

/** Also for the way back from another page of the interface; a reload forgets it. */
const wayBack = new WayBack();

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
  /** Entries that may have ended since they were read. */
  readonly #ended = new Set<string>();
  readonly #refresh = coalesced(() => this.#readEnded(), REFRESH_MS);

  /** Reads what the address says. Called within an effect. */
  read(): void {
    const request = historyRequest(this.view, preferences.utc);
    void this.#read(request);
  }

  /** Reads again what is shown as running and ends, until the returned function is called. */
  followEnds(): () => void {
    const ends = [
      onOpen(() => this.#look(runningIds(this.entries ?? []))),
      onEvent(({ event, uuid }) => {
        if (event === 'finished' && uuid !== undefined) this.#look([uuid]);
      }),
    ];
    return () => {
      for (const end of ends) end();
    };
  }

  #look(ids: readonly string[]): void {
    for (const id of ids) this.#ended.add(id);
    if (ids.length > 0) this.#refresh();
  }

  async #readEnded(): Promise<void> {
    // What is being read may be older than the end: it is looked at when it is there.
    if (this.isReading) return;
    const ids = runningIds(this.entries ?? []).filter((id) => this.#ended.has(id));
    this.#ended.clear();
    const newer: HistoryEntry[] = [];
    await forEachLimited(ids, CONCURRENT_READS, async (id) => {
      try {
        const detail = await readHistoryDetail(id);
        newer.push(detail);
        // That it is behind no more says nothing of the page, which may lack entries.
        if (detail.behind) this.behind = detail.behind;
      } catch {
        // It stays as it was: the next event, or the next connection, is another chance.
      }
    });
    if (this.entries !== null && newer.length > 0) this.entries = withNewer(this.entries, newer);
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
      if (turn === this.#reading) {
        this.isReading = false;
        if (this.#ended.size > 0) this.#refresh();
      }
    }
  }

  /** The address of the next page; that of this one is kept for the way back. */
  get olderBefore(): string | null {
    return this.next === null ? null : String(this.next);
  }

  /** Remembers that this page led to the next. */
  leave(): void {
    if (this.next !== null) wayBack.leave(this.view, this.next);
  }

  /** What the next newer page is before, `null` for the newest; `undefined` where it is not known. */
  get newer(): number | null | undefined {
    return wayBack.newer(this.view);
  }
}

/** All that is known of one entry. */
export async function readHistoryDetail(id: string): Promise<HistoryDetail> {
  return body(api.GET('/api/v1/history/{id}', { params: { path: { id } } }));
}
