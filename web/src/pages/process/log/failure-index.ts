/**
 * Which lines state a failure, as the engine knows them. They are looked for from the beginning, a step at a time, up
 * to a number of steps; beyond that, only where they are in view, and where somebody goes to the next one.
 */
import type { FailureLines } from '../../../api/types';
import type { StreamName } from './line';
import { type Direction, fetchFailures } from './output-requests';

/** From this weight on a line states a failure; below, it is a hint, such as a warning. */
const FAILURE_WEIGHT = 60;
/** Steps from the beginning, of 4,096 lines each. */
const STEPS = 64;
/** The time between two steps, in milliseconds. */
const STEP_MS = 120;
/** The time between two steps at the end of output that grows. */
const GROWTH_MS = 500;
/** The time until the next attempt where lines cannot be read. */
const AGAIN_MS = 3_000;
/** Failures in one answer. */
const LIMIT = 1_000;

export interface Failure {
  line: number;
  at: number;
  stream: StreamName;
}

export class FailureIndex {
  /** By the number of the line. */
  readonly failures = new Map<number, Failure>();
  /** All lines up to this number were looked at. */
  scannedTo = 0;
  #steps = 0;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #seen: [from: number, to: number][] = [];
  #isLooking = false;
  #isClosed = false;

  constructor(
    private readonly id: string,
    private readonly onchange: () => void,
  ) {}

  close(): void {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  has(line: number): boolean {
    return this.failures.has(line);
  }

  /** Whether no more are looked for on our own account: the count is that of a part. */
  get isCut(): boolean {
    return this.#steps >= STEPS;
  }

  /** Goes on, where there are lines that were not looked at. */
  update(firstLine: number, ended: number): void {
    this.scannedTo = Math.max(this.scannedTo, firstLine - 1);
    if (this.#timer !== null || this.#isClosed || this.isCut || this.scannedTo >= ended) return;
    const isGrowing = this.scannedTo + 4_096 > ended;
    this.#timer = setTimeout(
      () => void this.#step(firstLine, ended),
      this.#steps === 0 ? 0 : isGrowing ? GROWTH_MS : STEP_MS,
    );
  }

  async #step(firstLine: number, ended: number): Promise<void> {
    const from = this.scannedTo + 1;
    try {
      const found = await fetchFailures(this.id, from, 'next', LIMIT);
      this.#accept(found);
      this.scannedTo = found.next_line === undefined ? found.ended_lines : found.next_line - 1;
      if (this.scannedTo - from > 1_000) this.#steps += 1;
      this.onchange();
    } catch {
      // The lines themselves tell that the output cannot be read.
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
    this.#timer = null;
    this.update(firstLine, ended);
  }

  #accept(found: FailureLines): void {
    for (const failure of found.failures) {
      if (failure.weight < FAILURE_WEIGHT) continue;
      const { line, stream } = failure;
      this.failures.set(line, { line, stream, at: Date.parse(failure.at) });
    }
  }

  /** Looks at the lines in view, where that was not done. */
  look(from: number, to: number): void {
    const isKnown = to <= this.scannedTo || this.#seen.some(([first, last]) => first <= from && to <= last);
    if (isKnown || !this.isCut || this.#isLooking) return;
    this.#isLooking = true;
    const first = Math.max(1, from - 500);
    fetchFailures(this.id, first, 'next', LIMIT)
      .then((found) => {
        this.#accept(found);
        this.#seen.push([first, found.next_line === undefined ? found.ended_lines : found.next_line - 1]);
        this.onchange();
      })
      .catch(() => undefined)
      .finally(() => {
        this.#isLooking = false;
      });
  }

  /**
   * The next failure from a line on, or the one before it; `null` where there is none.
   *
   * @param isWanted such as whether it is on a stream that is shown
   */
  async find(
    from: number,
    direction: Direction,
    isWanted: (failure: Failure) => boolean,
    signal: AbortSignal,
  ): Promise<Failure | null> {
    const known = this.#findKnown(from, direction, isWanted);
    if (known) return known;
    let at = direction === 'next' ? Math.max(from, this.scannedTo + 1) : from;
    for (;;) {
      // All lines before are known.
      if (at < 1 || (direction === 'previous' && at <= this.scannedTo))
        return this.#findKnown(at, direction, isWanted);
      const found = await fetchFailures(this.id, at, direction, 100, signal);
      this.#accept(found);
      const candidates = found.failures
        .map((failure) => this.failures.get(failure.line))
        .filter((failure) => failure !== undefined && isWanted(failure));
      const nearest = direction === 'next' ? candidates[0] : candidates.at(-1);
      if (nearest) return nearest;
      if (found.next_line === undefined) return null;
      at = found.next_line;
    }
  }

  /** The nearest failure among the lines that were looked at from the beginning. */
  #findKnown(from: number, direction: Direction, isWanted: (failure: Failure) => boolean): Failure | null {
    if (from > this.scannedTo) return null;
    let nearest: Failure | null = null;
    for (const failure of this.failures.values()) {
      const isThere = direction === 'next' ? failure.line >= from : failure.line <= from;
      if (!isThere || failure.line > this.scannedTo || !isWanted(failure)) continue;
      const isNearer = nearest === null || (direction === 'next') === failure.line < nearest.line;
      if (isNearer) nearest = failure;
    }
    return nearest;
  }
}
