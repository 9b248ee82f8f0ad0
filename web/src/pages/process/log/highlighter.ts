/** Where drawn lines match what is searched for: a text at once, an expression when the worker has answered. */
import type { HighlightAnswer, HighlightRequest } from './highlight-worker';
import type { Match } from './output-requests';
import { findPlain, type Span } from './shown-text';

/** An expression that takes longer is given up, in milliseconds. */
const TIMEOUT_MS = 500;
const CACHED = 2_000;
const NONE: readonly Span[] = [];

export class Highlighter {
  #match: Match | null = null;
  #cache = new Map<string, readonly Span[]>();
  #pending = new Set<string>();
  #worker: Worker | null = null;
  #asked: { id: number; texts: string[]; timer: ReturnType<typeof setTimeout> } | null = null;
  #id = 0;
  #isGivenUp = false;

  /** @param onchange called when there are more matches to be shown */
  constructor(private readonly onchange: () => void) {}

  setMatch(match: Match | null): void {
    this.#match = match;
    this.#cache.clear();
    this.#pending.clear();
    this.#isGivenUp = false;
    // An answer to what was searched before is not waited for.
    if (this.#asked) clearTimeout(this.#asked.timer);
    this.#asked = null;
  }

  close(): void {
    if (this.#asked) clearTimeout(this.#asked.timer);
    this.#worker?.terminate();
    this.#worker = null;
  }

  spansOf(text: string): readonly Span[] {
    const match = this.#match;
    if (match === null || text === '') return NONE;
    if (!match.regex) return findPlain(text, match.text, match.matchCase);
    const found = this.#cache.get(text);
    if (found) return found;
    if (!this.#isGivenUp) this.#ask(text);
    return NONE;
  }

  #ask(text: string): void {
    if (this.#pending.size === 0) queueMicrotask(() => this.#send());
    this.#pending.add(text);
  }

  #send(): void {
    const match = this.#match;
    if (this.#asked !== null || this.#pending.size === 0 || !match?.regex) return;
    const texts = [...this.#pending];
    this.#pending.clear();
    this.#id += 1;
    const id = this.#id;
    this.#worker ??= this.#start();
    const timer = setTimeout(() => this.#giveUp(), TIMEOUT_MS);
    this.#asked = { id, texts, timer };
    const request: HighlightRequest = { id, source: match.text, ignoreCase: !match.matchCase, texts };
    this.#worker.postMessage(request);
  }

  #start(): Worker {
    const worker = new Worker(new URL('./highlight-worker.ts', import.meta.url), { type: 'module' });
    worker.addEventListener('message', ({ data }: MessageEvent<HighlightAnswer>) => this.#answered(data));
    return worker;
  }

  #answered({ id, spans }: HighlightAnswer): void {
    const asked = this.#asked;
    if (asked?.id !== id) return;
    clearTimeout(asked.timer);
    this.#asked = null;
    if (this.#cache.size > CACHED) this.#cache.clear();
    for (const [index, text] of asked.texts.entries()) this.#cache.set(text, toSpans(spans[index] ?? []));
    this.onchange();
    this.#send();
  }

  #giveUp(): void {
    this.#worker?.terminate();
    this.#worker = null;
    this.#asked = null;
    this.#pending.clear();
    this.#isGivenUp = true;
  }
}

function toSpans(places: readonly number[]): Span[] {
  const spans: Span[] = [];
  for (let index = 0; index + 1 < places.length; index += 2) {
    spans.push({ from: places[index] ?? 0, to: places[index + 1] ?? 0 });
  }
  return spans;
}
