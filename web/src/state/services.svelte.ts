/** The services of all workspaces, kept up to date by events. */
import { api, body } from '../api/client';
import type { LedgerEvent, Service } from '../api/types';
import { serviceKey } from '../model/service';
import { onEvent, onOpen } from './connection.svelte';
import { coalesced, whileVisible } from './refresh';

const PAGE = 200;
const REFRESH_MS = 200;
/** What no event tells, such as a definition that somebody else changed, is seen after so long. */
const RELOAD_MS = 30_000;

const RELEVANT = new Set<LedgerEvent['event']>([
  'created',
  'started',
  'spawn_failed',
  'ports',
  'stage',
  'ready',
  'health',
  'stopping',
  'exited',
  'restarting',
  'backoff',
  'finished',
]);

let list = $state.raw<Service[]>([]);
let loaded = $state(false);
let error = $state.raw<unknown>(null);

export const services = {
  /** Living ones, and those that failed and were not dismissed. */
  get list(): Service[] {
    return list;
  },
  get loaded(): boolean {
    return loaded;
  },
  get error(): unknown {
    return error;
  },
  refresh: () => void request(),
};

/** Takes what an answer says of one service, before the list is read again. */
export function acceptService(service: Service): void {
  const key = serviceKey(service);
  list = list.map((other) => (serviceKey(other) === key ? service : other));
}

const request = coalesced(load, REFRESH_MS);

async function load(): Promise<void> {
  try {
    const found: Service[] = [];
    let cursor: string | undefined;
    do {
      const query = { limit: PAGE, ...(cursor === undefined ? {} : { cursor }) };
      const page = await body(api.GET('/api/v1/services', { params: { query } }));
      found.push(...page.services);
      cursor = page.next;
    } while (cursor !== undefined);
    list = found;
    loaded = true;
    error = null;
  } catch (caught) {
    error = caught;
  }
}

/** Reads the services and follows them until the returned function is called. */
export function followServices(): () => void {
  const ends = [
    onOpen(() => request()),
    onEvent((event) => {
      if (RELEVANT.has(event.event)) request();
    }),
    whileVisible(request, RELOAD_MS),
  ];
  return () => {
    for (const end of ends) end();
  };
}
