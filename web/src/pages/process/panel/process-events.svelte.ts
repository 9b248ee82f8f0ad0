/** What happened to one execution, oldest first; kept up to date. */
import { api, body } from '../../../api/client';
import type { EventsPage, LedgerEvent } from '../../../api/types';
import { onEvent, onOpen } from '../../../state/connection.svelte';

/** Events that only samples and keys make. */
const SILENT = new Set<LedgerEvent['event']>(['sampled', 'input', 'resized']);
/** The most that are kept. */
const KEPT = 2_000;

export class ProcessEvents {
  list = $state.raw<LedgerEvent[]>([]);
  loaded = $state(false);
  error = $state.raw<unknown>(null);
  #next = 0;
  #isReading = false;
  #again = false;

  constructor(private readonly uuid: string) {}

  /** Follows them until the returned function is called. */
  follow(): () => void {
    const ends = [
      onOpen(() => void this.read()),
      onEvent((event) => {
        if (event.uuid === this.uuid && !SILENT.has(event.event)) void this.read();
      }),
    ];
    return () => {
      for (const end of ends) end();
    };
  }

  /** Reads those that are new. */
  async read(): Promise<void> {
    if (this.#isReading) {
      this.#again = true;
      return;
    }
    this.#isReading = true;
    try {
      await this.#readPages();
      this.loaded = true;
      this.error = null;
    } catch (error) {
      this.error = error;
    }
    this.#isReading = false;
    if (!this.#again) return;
    this.#again = false;
    await this.read();
  }

  async #readPages(): Promise<void> {
    for (;;) {
      const query = { id: this.uuid, cursor: this.#next };
      const page = (await body(
        api.GET('/api/v1/events', { params: { query }, parseAs: 'json' }),
      )) as EventsPage;
      const found = page.events.filter((event) => !SILENT.has(event.event));
      this.#next = page.next;
      if (found.length > 0) this.list = [...this.list, ...found].slice(-KEPT);
      if (!page.behind) return;
    }
  }
}
