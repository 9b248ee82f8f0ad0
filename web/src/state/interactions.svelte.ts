/** Questions that wait for an answer, and those that ended lately; kept up to date by events. */
import { api, body } from '../api/client';
import { observeServerTime } from '../api/server-clock';
import type { Interaction } from '../api/types';
import { onEvent, onOpen } from './connection.svelte';
import { coalesced } from './refresh';

const PAGE = 200;
const REFRESH_MS = 50;
/** What no event tells is seen after so long, and a read that failed is repeated. */
const RELOAD_MS = 10_000;

let list = $state.raw<Interaction[]>([]);
let loaded = $state(false);
let error = $state.raw<unknown>(null);
/** Those that this page answered or cancelled. */
const endedHere = new Set<string>();

export const interactions = {
  /** All that are known, newest first. */
  get list(): Interaction[] {
    return list;
  },
  /** Those that wait, the one that ends first at the front. */
  get pending(): Interaction[] {
    return pending;
  },
  get loaded(): boolean {
    return loaded;
  },
  /** Why the list could not be read the last time; `null` where it could. */
  get error(): unknown {
    return error;
  },
  /** Whether a question of this execution (by its short id) is open. */
  isWaiting(executionId: string): boolean {
    return pending.some((interaction) => interaction.execution === executionId);
  },
  find(id: string): Interaction | undefined {
    return list.find((interaction) => interaction.id === id);
  },
  /** Whether it was this page that ended a question. */
  endedHere(id: string): boolean {
    return endedHere.has(id);
  },
  refresh: () => void request(),
};

const pending = $derived(
  list
    .filter((interaction) => interaction.end === undefined)
    .toSorted((a, b) => a.expires_at.localeCompare(b.expires_at)),
);

const request = coalesced(load, REFRESH_MS);

async function load(): Promise<void> {
  try {
    const asked = Date.now();
    const query = { all: true, limit: PAGE };
    const page = await body(api.GET('/api/v1/interactions', { params: { query } }));
    observeClock(page.interactions, asked);
    list = page.interactions;
    loaded = true;
    error = null;
  } catch (caught) {
    error = caught;
  }
}

/** How long a question has left, and when it ends, say what time it is for the daemon. */
function observeClock(questions: Interaction[], asked: number): void {
  const open = questions.find((question) => question.remaining_ms !== undefined);
  if (open?.remaining_ms) observeServerTime(Date.parse(open.expires_at) - open.remaining_ms, asked);
}

/** A question with its answer, which lists do not have. */
export async function readInteraction(id: string): Promise<Interaction> {
  return body(api.GET('/api/v1/interactions/{id}', { params: { path: { id } } }));
}

export async function answerInteraction(id: string, value: string): Promise<void> {
  const ended = api.POST('/api/v1/interactions/{id}/answer', { params: { path: { id } }, body: { value } });
  accept(await body(ended));
}

export async function cancelInteraction(id: string): Promise<void> {
  accept(await body(api.POST('/api/v1/interactions/{id}/cancel', { params: { path: { id } }, body: {} })));
}

/** Takes what an answer says of a question that this page ended. */
function accept(ended: Interaction): void {
  endedHere.add(ended.id);
  list = list.map((interaction) => (interaction.id === ended.id ? ended : interaction));
  request();
}

/** Reads again and again while the page is visible; after a failure always, for a notification tells who looks elsewhere. */
function reloading(): () => void {
  const timer = setInterval(() => {
    if (error !== null || document.visibilityState === 'visible') request();
  }, RELOAD_MS);
  return () => clearInterval(timer);
}

/** Reads the questions and follows them until the returned function is called. */
export function followInteractions(): () => void {
  const ends = [
    onOpen(() => request()),
    onEvent((event) => {
      const relevant = event.event === 'interaction' || event.event === 'prompt_detected';
      if (relevant || event.event === 'finished') request();
    }),
    reloading(),
  ];
  return () => {
    for (const end of ends) end();
  };
}
