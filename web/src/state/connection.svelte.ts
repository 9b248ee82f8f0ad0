/** The one stream of events that all pages share. */
import { api, body } from '../api/client';
import { type EventStream, followEvents } from '../api/event-stream';
import type { EventsPage, LedgerEvent } from '../api/types';
import { type ConnectionInput, type ConnectionStatus, INITIAL, step } from './connection-status';

type EventListener = (event: LedgerEvent) => void;
type Listener = () => void;

const TICK_MS = 500;

let state = $state.raw(INITIAL);
let stream: EventStream | null = null;
const eventListeners = new Set<EventListener>();
const openListeners = new Set<Listener>();

function input(value: ConnectionInput): void {
  state = step(state, value);
}

export const connection = {
  get status(): ConnectionStatus {
    return state.status;
  },
  /** Whether requests can be expected to arrive. */
  get usable(): boolean {
    return state.status.kind !== 'lost';
  },
  /** Whether events arrive. */
  get live(): boolean {
    return state.status.kind === 'live';
  },
  retryNow(): void {
    stream?.retryNow();
  },
};

/** Calls `listener` with every event from now on. Returns what ends that. */
export function onEvent(listener: EventListener): () => void {
  eventListeners.add(listener);
  return () => eventListeners.delete(listener);
}

/** Calls `listener` whenever the stream begins, also after an interruption. Returns what ends that. */
export function onOpen(listener: Listener): () => void {
  openListeners.add(listener);
  if (state.status.kind === 'live') listener();
  return () => openListeners.delete(listener);
}

/** Follows the events until the returned function is called. */
export function startConnection(): () => void {
  const timer = setInterval(() => input({ kind: 'tick', at: performance.now() }), TICK_MS);
  let ended = false;
  void follow(() => ended);
  return () => {
    ended = true;
    clearInterval(timer);
    stream?.close();
    stream = null;
    state = INITIAL;
  };
}

async function follow(hasEnded: () => boolean): Promise<void> {
  // From a position, not from "now": otherwise an interruption before the first event would lose some.
  const position = await currentPosition(hasEnded);
  if (hasEnded()) return;
  stream = followEvents('api/v1/events', position, {
    onOpen: () => {
      input({ kind: 'opened', at: performance.now() });
      for (const listener of openListeners) listener();
    },
    onClose: (nextTry) => input({ kind: 'closed', at: performance.now(), nextTry }),
    onEvent: ({ data }) => {
      input({ kind: 'event' });
      const event = JSON.parse(data) as LedgerEvent;
      for (const listener of eventListeners) listener(event);
    },
  });
}

async function currentPosition(hasEnded: () => boolean): Promise<string> {
  for (;;) {
    try {
      // The route answers with a stream, too, where that is asked for.
      const page = await body(api.GET('/api/v1/events', { params: {}, parseAs: 'json' }));
      return String((page as EventsPage).next);
    } catch {
      input({ kind: 'closed', at: performance.now(), nextTry: performance.now() + 1_000 });
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      if (hasEnded()) return '0';
    }
  }
}
