/**
 * Follows a stream of server-sent events across ends of the connection and of the daemon. `EventSource` cannot
 * carry the page key, so the stream is read by `fetch`.
 */
import { BASE_PATH } from '../app/base-path';
import { apiError, fetchWithKey, noteReceived } from './client';
import { type ServerSentEvent, SseParser } from './sse-parser';

/** The time before the first, second, … attempt to connect again, in milliseconds; the last one repeats. */
const RETRY_MS = [250, 1_000, 2_000, 5_000];
/** The server sends something every 15 s: without anything for so long, the connection is gone. */
const SILENCE_MS = 40_000;

export interface StreamHandlers {
  onEvent(event: ServerSentEvent): void;
  onOpen(): void;
  /** The connection ended, and the next attempt is at this time (of `performance.now()`). */
  onClose(nextTry: number): void;
}

export interface EventStream {
  close(): void;
  /** Ends the wait for the next attempt. */
  retryNow(): void;
}

/** Follows `path` (below the base path, with its query) after the event `lastId`. */
export function followEvents(path: string, lastId: string | null, handlers: StreamHandlers): EventStream {
  const closed = new AbortController();
  let wake: (() => void) | null = null;
  let position = lastId;
  let failures = 0;

  async function connect(): Promise<void> {
    const headers: Record<string, string> = { Accept: 'text/event-stream' };
    if (position !== null) headers['Last-Event-ID'] = position;
    const silence = new AbortController();
    const response = await fetchWithKey(BASE_PATH + path, {
      headers,
      signal: AbortSignal.any([closed.signal, silence.signal]),
    });
    if (!response.ok || !response.body) {
      throw apiError(response.status, await response.json().catch(() => null));
    }
    failures = 0;
    handlers.onOpen();
    await readEvents(response.body, silence);
  }

  async function readEvents(stream: ReadableStream<Uint8Array>, silence: AbortController): Promise<void> {
    const parser = new SseParser();
    const decoder = new TextDecoder();
    const reader = stream.getReader();
    for (;;) {
      const timer = setTimeout(() => silence.abort(), SILENCE_MS);
      const { done, value } = await reader.read().finally(() => clearTimeout(timer));
      if (done) return;
      noteReceived();
      for (const event of parser.push(decoder.decode(value, { stream: true }))) {
        if (event.id !== null) position = event.id;
        handlers.onEvent(event);
      }
    }
  }

  async function run(): Promise<void> {
    while (!closed.signal.aborted) {
      try {
        await connect();
      } catch {
        // Whatever ended it, the next attempt says whether it lasts.
      }
      if (closed.signal.aborted) return;
      const delay = RETRY_MS[Math.min(failures, RETRY_MS.length - 1)] ?? 0;
      failures += 1;
      handlers.onClose(performance.now() + delay);
      await new Promise<void>((resolve) => {
        wake = resolve;
        setTimeout(resolve, delay);
      });
      wake = null;
    }
  }

  void run();
  return {
    close: () => {
      closed.abort();
      wake?.();
    },
    retryNow: () => wake?.(),
  };
}
