/** Alerts of a range of time, as marks of plots. */
import { api, body } from '../../api/client';
import type { EventsPage, LedgerEvent } from '../../api/types';
import { onEvent } from '../../state/connection.svelte';

export type AlertEvent = Extract<LedgerEvent, { event: 'alert' }>;

/** Pages of events that are read for the alerts among them. */
const PAGES = 20;

export class Alerts {
  #raised = $state.raw<AlertEvent[]>([]);

  /** Oldest first. */
  get raised(): readonly AlertEvent[] {
    return this.#raised;
  }

  /** Reads those since a time, and follows them until the returned function is called. */
  follow(since: number): () => void {
    let ended = false;
    const end = onEvent((event) => {
      if (isRaised(event)) this.#raised = [...this.#raised, event];
    });
    void this.#read(since, () => ended);
    return () => {
      ended = true;
      end();
    };
  }

  async #read(since: number, isEnded: () => boolean): Promise<void> {
    let cursor: number | undefined;
    const found: AlertEvent[] = [];
    try {
      for (let pages = 0; pages < PAGES && !isEnded(); pages += 1) {
        const query = cursor === undefined ? { since: new Date(since).toISOString() } : { cursor };
        const page = (await body(
          api.GET('/api/v1/events', { params: { query }, parseAs: 'json' }),
        )) as EventsPage;
        found.push(...page.events.filter(isRaised));
        if (!page.behind) break;
        cursor = page.next;
      }
    } catch {
      // The plots are complete without them; the connection tells that the daemon is away.
    }
    const known = new Set(found.map((event) => event.cursor));
    if (!isEnded()) this.#raised = [...found, ...this.#raised.filter((event) => !known.has(event.cursor))];
  }
}

function isRaised(event: LedgerEvent): event is AlertEvent {
  return event.event === 'alert' && event.state === 'raised';
}
