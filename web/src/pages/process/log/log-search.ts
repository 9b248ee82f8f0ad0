/** A search of the whole output: its true count, and the way from match to match. The server searches. */
import { ApiError } from '../../../api/problem';
import type { LineSearch } from '../../../api/types';
import type { StreamName } from './line';
import { type Direction, fetchMatches, type Match } from './output-requests';
import { type PatternProblem, patternProblem } from './search-problem';
import type { LineRange } from './selection';

/** Where it is searched. */
export interface SearchScope {
  streams: readonly StreamName[];
  /** The numbers that are shown; to the end where `to` is absent. */
  bounds: Partial<LineRange>;
  /** Whether there will be no more output: then a last line without an end counts. */
  finished: boolean;
}

export interface SearchState {
  match: Match | null;
  /** Matching lines that were counted. */
  total: number;
  /** How much was searched, from 0 to 1. */
  progress: number;
  /** Whether everything that there is was counted. */
  isCounted: boolean;
  /** The match that was gone to, and its number among all; `null` where that is not known. */
  current: number | null;
  ordinal: number | null;
  problem: PatternProblem | null;
}

export const NO_SEARCH: SearchState = {
  match: null,
  total: 0,
  progress: 0,
  isCounted: false,
  current: null,
  ordinal: null,
  problem: null,
};

/** The time between two counts of output that grows, in milliseconds. */
const RECOUNT_MS = 1_000;

export class LogSearch {
  state: SearchState = NO_SEARCH;
  #scope: SearchScope = { streams: [], bounds: {}, finished: false };
  #controller = new AbortController();
  #countedTo = 0;
  #isCounting = false;
  #recount: ReturnType<typeof setTimeout> | null = null;

  constructor(
    private readonly id: string,
    private readonly onchange: () => void,
  ) {}

  close(): void {
    this.#controller.abort();
    if (this.#recount !== null) clearTimeout(this.#recount);
  }

  #set(changes: Partial<SearchState>): void {
    this.state = { ...this.state, ...changes };
    this.onchange();
  }

  /** Searches for something else, or elsewhere. What was found before is shown until there is more. */
  start(match: Match | null, scope: SearchScope): void {
    this.close();
    this.#controller = new AbortController();
    this.#scope = scope;
    this.#countedTo = 0;
    this.#isCounting = false;
    if (match === null) {
      this.state = NO_SEARCH;
      this.onchange();
      return;
    }
    this.#set({ match, isCounted: false, progress: 0, current: null, ordinal: null });
    void this.#count(match, this.#controller.signal);
  }

  /** There is more output, or there will be no more. */
  grow(ended: number, finished: boolean): void {
    const { match, isCounted, problem } = this.state;
    if (match === null || !isCounted || this.#isCounting || problem !== null || this.#recount !== null)
      return;
    const isEnd = finished && !this.#scope.finished;
    if (this.#countedTo >= ended && !isEnd) return;
    const { signal } = this.#controller;
    const count = () => {
      this.#recount = null;
      if (signal.aborted) return;
      if (isEnd) this.#countedTo = 0;
      this.#scope = { ...this.#scope, finished };
      void this.#count(match, signal);
    };
    this.#recount = setTimeout(count, finished ? 0 : RECOUNT_MS);
  }

  async #count(match: Match, signal: AbortSignal): Promise<void> {
    this.#isCounting = true;
    const isFirst = this.#countedTo === 0;
    const from = Math.max(this.#scope.bounds.from ?? 1, this.#countedTo + 1);
    try {
      const counted = await this.#countFrom(match, from, signal, (total, progress) => {
        if (isFirst) this.#set({ total, progress, problem: null });
      });
      this.#countedTo = counted.ended;
      const total = isFirst ? counted.total : this.state.total + counted.total;
      this.#set({ total, progress: 1, isCounted: true, problem: null });
    } catch (error) {
      this.#fail(error, signal);
    }
    this.#isCounting = false;
  }

  /** How many lines match from one on, within the bounds. Those that have not ended count when they have. */
  async #countFrom(
    match: Match,
    from: number,
    signal: AbortSignal,
    onprogress: (total: number, progress: number) => void = () => undefined,
  ): Promise<{ total: number; ended: number }> {
    const { streams, bounds, finished } = this.#scope;
    let total = 0;
    let at = from;
    for (;;) {
      const part = await fetchMatches(this.id, match, { from: at, countOnly: true }, streams, signal);
      total += part.count;
      if (part.next_line === undefined) {
        const last = Math.min(
          bounds.to ?? Number.POSITIVE_INFINITY,
          finished ? Number.POSITIVE_INFINITY : part.ended_lines,
        );
        const beyond =
          last === Number.POSITIVE_INFINITY
            ? 0
            : await this.#countBeyond(match, Math.max(last + 1, from), signal);
        return { total: total - beyond, ended: part.ended_lines };
      }
      at = part.next_line;
      onprogress(total, at / Math.max(1, part.ended_lines));
    }
  }

  /** How many matching lines are beyond the bounds, or have not ended. */
  async #countBeyond(match: Match, from: number, signal: AbortSignal): Promise<number> {
    let total = 0;
    let at: number | undefined = from;
    while (at !== undefined) {
      const part: LineSearch = await fetchMatches(
        this.id,
        match,
        { from: at, countOnly: true },
        this.#scope.streams,
        signal,
      );
      total += part.count;
      at = part.next_line;
    }
    return total;
  }

  #fail(error: unknown, signal: AbortSignal): void {
    if (signal.aborted) return;
    const isPattern = error instanceof ApiError && error.problem.status === 422;
    if (isPattern) this.#set({ problem: patternProblem(error.problem.message) });
    else this.#set({ isCounted: true });
  }

  /** Goes to the next match from a line on, over the end to the other one; `null` where there is none. */
  async find(from: number, direction: Direction): Promise<number | null> {
    const { match } = this.state;
    if (match === null) return null;
    const { signal } = this.#controller;
    const { from: first = 1, to: last } = this.#scope.bounds;
    try {
      const line =
        (await this.#findFrom(match, from, direction, signal)) ??
        (await this.#findFrom(match, direction === 'next' ? first : last, direction, signal));
      if (line === null || signal.aborted) return null;
      this.#set({ current: line, ordinal: null });
      void this.#numberOf(match, line, signal);
      return line;
    } catch (error) {
      this.#fail(error, signal);
      return null;
    }
  }

  async #findFrom(
    match: Match,
    from: number | undefined,
    direction: Direction,
    signal: AbortSignal,
  ): Promise<number | null> {
    const { streams, bounds } = this.#scope;
    const isWithin = (line: number) =>
      line >= (bounds.from ?? 1) && line <= (bounds.to ?? Number.POSITIVE_INFINITY);
    let at = from;
    for (;;) {
      if (at !== undefined && at < 1) return null;
      const range = { direction, limit: 1, ...(at === undefined ? {} : { from: at }) };
      const part = await fetchMatches(this.id, match, range, streams, signal);
      const found = part.matches[0];
      if (found) return isWithin(found.line) ? found.line : null;
      if (part.next_line === undefined) return null;
      at = part.next_line;
    }
  }

  /** Finds out the how manieth match this is. */
  async #numberOf(match: Match, line: number, signal: AbortSignal): Promise<void> {
    try {
      const { total } = await this.#countFrom(match, line, signal);
      if (this.state.current !== line || !this.state.isCounted) return;
      this.#set({ ordinal: Math.max(1, this.state.total - total + 1) });
    } catch {
      // Then it is not told.
    }
  }
}
