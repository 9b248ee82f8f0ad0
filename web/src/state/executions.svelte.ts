/** Every execution that the person may see, kept up to date by events. */
import { api, body } from '../api/client';
import { ApiError } from '../api/problem';
import type { Execution, LedgerEvent } from '../api/types';
import { onEvent, onOpen } from './connection.svelte';
import { coalesced, forEachLimited, whileVisible } from './refresh';

/** Executions of one page of the list. */
const PAGE = 1_000;
/** The most that are kept; older ones are in the history. */
const KEPT = 20_000;
/** Changed executions that are read one by one; of more, the newest page is read. */
const SINGLE_READS = 40;
const CONCURRENT_READS = 6;
const REFRESH_MS = 150;
/** What no event tells, such as a removal, is seen after so long. */
const RELOAD_MS = 60_000;

/** Events that change nothing of what is shown here. */
const SILENT = new Set<LedgerEvent['event']>([
  'input',
  'resized',
  'lease_taken',
  'sampled',
  'interaction',
  'alert',
]);

let list = $state.raw<Execution[]>([]);
let loaded = $state(false);
let complete = $state(false);
let error = $state.raw<unknown>(null);
let total = $state<number | null>(null);

const known = new Map<string, Execution>();
const dirty = new Set<string>();
/** What changed here while the list is read, which takes several requests; `null` while it is not. */
let touched: Set<string> | null = null;

export const executions = {
  /** Newest first. */
  get list(): Execution[] {
    return list;
  },
  /** Whether the list was read once. */
  get loaded(): boolean {
    return loaded;
  },
  /** Whether it was read to its end once. */
  get complete(): boolean {
    return complete;
  },
  /** Why the list could not be read the last time; `null` where it could. */
  get error(): unknown {
    return error;
  },
  /** How many there are, where that is more than are kept here. */
  get total(): number {
    return Math.max(total ?? 0, list.length);
  },
  find(id: string): Execution | undefined {
    return known.get(id) ?? list.find((execution) => execution.id === id);
  },
  reload: () => void requestReload(),
};

function publish(): void {
  list = [...known.values()].sort((a, b) => (a.uuid < b.uuid ? 1 : -1)).slice(0, KEPT);
}

/** Takes what an answer says of one execution. */
export function acceptExecution(execution: Execution): void {
  set(execution);
  publish();
}

export function forgetExecutions(ids: Iterable<string>): void {
  for (const id of ids) {
    const found = executions.find(id);
    if (found) remove(found.uuid);
  }
  publish();
}

/** Reads the list and follows it until the returned function is called. */
export function followExecutions(): () => void {
  const ends = [
    onOpen(() => requestReload()),
    onEvent((event) => {
      if (event.uuid === undefined || SILENT.has(event.event)) return;
      dirty.add(event.uuid);
      requestRefresh();
    }),
    whileVisible(requestReload, RELOAD_MS),
  ];
  return () => {
    for (const end of ends) end();
  };
}

const requestReload = coalesced(reload, 0);
const requestRefresh = coalesced(refresh, REFRESH_MS);

function set(execution: Execution): void {
  known.set(execution.uuid, execution);
  touched?.add(execution.uuid);
}

function remove(uuid: string): void {
  known.delete(uuid);
  touched?.add(uuid);
}

async function reload(): Promise<void> {
  touched = new Set();
  try {
    const found = new Map<string, Execution>();
    let cursor: string | undefined;
    do {
      const page = await readPage(cursor);
      for (const execution of page.executions) found.set(execution.uuid, execution);
      total = page.total ?? found.size;
      cursor = page.next;
      // The first page is shown while the others are on their way.
      if (!loaded) replace(found);
    } while (cursor !== undefined && found.size < KEPT);
    replace(found);
    complete = true;
    error = null;
  } catch (caught) {
    error = caught;
  } finally {
    touched = null;
  }
}

function readPage(cursor: string | undefined) {
  const query = { limit: PAGE, ...(cursor === undefined ? {} : { cursor }) };
  return body(api.GET('/api/v1/executions', { params: { query } }));
}

function replace(found: Map<string, Execution>): void {
  for (const uuid of touched ?? []) {
    const newer = known.get(uuid);
    if (newer) found.set(uuid, newer);
    else found.delete(uuid);
  }
  known.clear();
  for (const [id, execution] of found) known.set(id, execution);
  loaded = true;
  publish();
}

async function refresh(): Promise<void> {
  const ids = [...dirty];
  dirty.clear();
  const single = ids.length > SINGLE_READS ? await refreshNewest(ids) : ids;
  await forEachLimited(single, CONCURRENT_READS, refreshOne);
  publish();
}

/** Reads the newest page; returns the ids that are not on it. */
async function refreshNewest(ids: string[]): Promise<string[]> {
  try {
    const page = await readPage(undefined);
    const found = new Set(page.executions.map((execution) => execution.uuid));
    for (const execution of page.executions) set(execution);
    total = page.total ?? total;
    return ids.filter((id) => !found.has(id));
  } catch (caught) {
    error = caught;
    return [];
  }
}

async function refreshOne(id: string): Promise<void> {
  try {
    const answer = api.GET('/api/v1/executions/{id}', { params: { path: { id } } });
    set(await body(answer));
  } catch (caught) {
    if (caught instanceof ApiError && caught.problem.status === 404) remove(id);
    else error = caught;
  }
}
