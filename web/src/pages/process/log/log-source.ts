/**
 * The output of an execution as the viewer asks for it: lines that were read, which ones are missing, and whether
 * there are more. Positions are line numbers; lines that have not ended follow the last number.
 */
import { ApiError, ConnectionError } from '../../../api/problem';
import { type LinePage, type LogLine, type LostOutput, toPage } from './line';
import { createReader, type LineFilter, type LineReader, pageStart } from './line-reader';
import { LineStore } from './line-store';
import { fetchLines } from './output-requests';
import { FIRST_POLL, nextPoll, type PollResult } from './poll-delay';
import type { LineRange } from './selection';

export type Row =
  | { kind: 'line'; position: number; line: LogLine }
  /** Not read yet. */
  | { kind: 'unknown'; position: number };

export interface Need {
  position: number;
  direction: 'forward' | 'backward';
}

/** While only lines that match are shown. */
const SEARCH_MS = 1_000;
/** How soon it is tried again to read lines, in milliseconds. */
const AGAIN_MS = 1_000;
/** Requests at a time. */
const CONCURRENT = 3;

export interface SourceHandlers {
  onchange(): void;
  /** The execution is not known any more. */
  ongone(): void;
}

export class LogSource {
  firstLine = 1;
  ended = 0;
  open: LogLine[] = [];
  finished = false;
  gapAfter: LostOutput | undefined;
  damagedFrom: number | undefined;
  /** Whether anything was read. */
  isLoaded = false;
  /** Why the output cannot be read; nothing more is asked for until {@link retry}. */
  error: unknown = null;
  /** How many of the last lines are read with each poll. */
  tailLines = 0;

  readonly #store = new LineStore();
  #reader: LineReader;
  #bounds: Partial<LineRange> = {};
  #loading = new Map<string, AbortController>();
  #timer: ReturnType<typeof setTimeout> | null = null;
  #again: ReturnType<typeof setTimeout> | undefined;
  #poll = FIRST_POLL;
  #isPolling = false;
  #isClosed = false;

  constructor(
    readonly id: string,
    private filter: LineFilter,
    private readonly handlers: SourceHandlers,
  ) {
    this.#reader = createReader(id, filter);
  }

  /** Asks for more until it is closed, or until there cannot be more. */
  start(): void {
    document.addEventListener('visibilitychange', this.#onvisibility);
    void this.#pollOnce();
  }

  close(): void {
    this.#isClosed = true;
    document.removeEventListener('visibilitychange', this.#onvisibility);
    if (this.#timer !== null) clearTimeout(this.#timer);
    clearTimeout(this.#again);
    this.#abort();
  }

  setFilter(filter: LineFilter): void {
    this.filter = filter;
    this.#reader = createReader(this.id, filter);
    this.#abort();
    this.#store.clear();
    this.open = [];
    this.pollNow();
  }

  /** Shows only these numbers, from the oldest kept or to the end where one is absent. */
  setBounds(bounds: Partial<LineRange>): void {
    this.#bounds = bounds;
  }

  get isFiltered(): boolean {
    return this.filter.match !== null || this.filter.streams.length > 0;
  }

  get isDense(): boolean {
    return this.#reader.isDense;
  }

  /** Whether lines are only looked for up to a number. */
  get isBoundedAtEnd(): boolean {
    return this.#bounds.to !== undefined && this.#bounds.to <= this.ended;
  }

  /** Whether lines before the first position are gone. */
  get isCutAtStart(): boolean {
    return this.firstLine > 1 && this.first === this.firstLine;
  }

  /** The first position. */
  get first(): number {
    return Math.max(this.firstLine, this.#bounds.from ?? 1);
  }

  /** The last position; less than the first one where there is none. */
  get last(): number {
    if (this.isBoundedAtEnd) return Math.max(this.first - 1, this.#bounds.to ?? 0);
    return this.ended + this.open.length;
  }

  /** The row at a position, or the next one after it. */
  atOrAfter(position: number): Row | null {
    const at = Math.max(position, this.first);
    if (at <= this.ended) {
      const found = this.#store.atOrAfter(at, Math.min(this.last, this.ended));
      if (found && 'line' in found) return { kind: 'line', position: found.line.number, line: found.line };
      if (found) return { kind: 'unknown', position: found.unknown };
    }
    return this.#openRow(Math.max(at, this.ended + 1));
  }

  /** The row at a position, or the next one before it. */
  atOrBefore(position: number): Row | null {
    const at = Math.min(position, this.last);
    if (at < this.first) return null;
    if (at > this.ended) return this.#openRow(at);
    const found = this.#store.atOrBefore(at, this.first);
    if (!found) return null;
    if ('line' in found) return { kind: 'line', position: found.line.number, line: found.line };
    return { kind: 'unknown', position: found.unknown };
  }

  #openRow(position: number): Row | null {
    const line = position <= this.last ? this.open[position - this.ended - 1] : undefined;
    return line ? { kind: 'line', position, line } : null;
  }

  isKnown(position: number): boolean {
    return (
      position < this.first || position > Math.min(this.last, this.ended) || this.#store.isKnown(position)
    );
  }

  /** Reads what is missing. What is on its way for none of these is given up. */
  request(needs: readonly Need[]): void {
    if (this.error !== null) return;
    const wanted = new Map<string, Need>();
    for (const need of needs) {
      if (!this.isKnown(need.position)) wanted.set(this.#keyOf(need), need);
    }
    for (const [key, loading] of this.#loading) {
      if (wanted.has(key)) continue;
      loading.abort();
      this.#loading.delete(key);
    }
    for (const [key, need] of wanted) {
      if (this.#loading.size >= CONCURRENT) return;
      if (!this.#loading.has(key)) void this.#load(key, need);
    }
  }

  #keyOf({ position, direction }: Need): string {
    return this.isDense ? String(pageStart(position)) : `${direction} ${position}`;
  }

  async #load(key: string, { position, direction }: Need): Promise<void> {
    const controller = new AbortController();
    this.#loading.set(key, controller);
    const reader = this.#reader;
    try {
      const page = await reader[direction](position, controller.signal);
      if (reader === this.#reader) this.#accept(page);
    } catch (error) {
      if (!controller.signal.aborted) this.#fail(error);
      if (isPassing(error)) this.#tryAgain();
    } finally {
      if (this.#loading.get(key) === controller) this.#loading.delete(key);
    }
  }

  /** Lets the view ask again for what it misses. */
  #tryAgain(): void {
    clearTimeout(this.#again);
    this.#again = setTimeout(() => {
      if (!this.#isClosed) this.handlers.onchange();
    }, AGAIN_MS);
  }

  #accept(page: LinePage): void {
    this.isLoaded = true;
    this.firstLine = Math.max(this.firstLine, page.firstLine);
    const isNewest = page.ended >= this.ended;
    this.ended = Math.max(this.ended, page.ended);
    if (page.to >= page.from) this.#store.insert(page.from, page.to, page.lines);
    this.damagedFrom = page.damagedFrom ?? this.damagedFrom;
    if (isNewest && page.finished !== undefined) {
      this.finished = page.finished;
      this.gapAfter = page.gapAfter;
    }
    this.handlers.onchange();
  }

  #fail(error: unknown): void {
    if (isPassing(error)) return;
    if (error instanceof ApiError && error.problem.code === 'process_not_found') this.handlers.ongone();
    this.error = error;
    this.handlers.onchange();
  }

  retry(): void {
    this.error = null;
    this.handlers.onchange();
    this.pollNow();
  }

  /** Asks now whether there is more. */
  pollNow(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#poll = FIRST_POLL;
    void this.#pollOnce();
  }

  readonly #onvisibility = (): void => {
    if (document.visibilityState === 'visible' && !this.finished) this.pollNow();
  };

  async #pollOnce(): Promise<void> {
    if (this.#isPolling || this.#isClosed) return;
    this.#isPolling = true;
    const reader = this.#reader;
    const result = await this.#readEnd(reader);
    this.#isPolling = false;
    if (this.#isClosed) return;
    if (reader !== this.#reader) {
      this.pollNow();
      return;
    }
    if (this.finished && result !== 'failed') return;
    this.#poll = nextPoll(this.#poll, result, document.visibilityState === 'hidden');
    // What matches is searched for, which costs more than the last lines.
    const delay = this.filter.match ? Math.max(SEARCH_MS, this.#poll.delay) : this.#poll.delay;
    this.#timer = setTimeout(() => void this.#pollOnce(), delay);
  }

  async #readEnd(reader: LineReader): Promise<PollResult> {
    const isSearch = this.filter.match !== null;
    const before = `${this.ended} ${this.finished} ${openState(this.open)}`;
    const count = isSearch ? 1 : Math.max(1, this.tailLines);
    try {
      const body = await fetchLines(this.id, { last: count }, count + 4, this.filter.streams);
      if (reader !== this.#reader) return 'same';
      const page = toPage(body, null);
      this.open = isSearch ? [] : page.open;
      // What is read for a search is what matches.
      this.#accept(isSearch ? { ...page, from: 1, to: 0 } : page);
      return before === `${this.ended} ${this.finished} ${openState(this.open)}` ? 'same' : 'more';
    } catch (error) {
      this.#fail(error);
      return 'failed';
    }
  }

  #abort(): void {
    for (const controller of this.#loading.values()) controller.abort();
    this.#loading.clear();
  }
}

/** Whether it is the connection that failed, or a daemon that is about to end: another attempt may do. */
function isPassing(error: unknown): boolean {
  return error instanceof ConnectionError || (error instanceof ApiError && error.problem.retryable);
}

function openState(open: readonly LogLine[]): string {
  return open.map((line) => line.offset + line.text.length + line.clippedBytes).join();
}
