/** How many lines were printed when: for the strip above the log, and for times of lines that are not read. */
import type { OutputShape } from '../../../api/types';
import { fetchShape } from './output-requests';

const BUCKETS = 150;
/** The time between two readings while output grows, in milliseconds. */
const REFRESH_MS = 2_000;

export class OutputShapeModel {
  shape = $state.raw<OutputShape | null>(null);
  #readEnded = -1;
  #isReading = false;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #isClosed = false;

  constructor(private readonly id: string) {}

  close(): void {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  /** Reads it again, soon, where there is more output. */
  update(ended: number, isLast: boolean): void {
    if (this.#isReading || this.#timer !== null || this.#isClosed || this.#readEnded === ended) return;
    const delay = this.shape === null || isLast ? 0 : REFRESH_MS;
    this.#timer = setTimeout(() => void this.#read(ended), delay);
  }

  async #read(ended: number): Promise<void> {
    this.#timer = null;
    this.#isReading = true;
    try {
      this.shape = await fetchShape(this.id, BUCKETS);
      this.#readEnded = ended;
    } catch {
      // The strip stays as it was; the lines tell what is wrong.
    }
    this.#isReading = false;
  }

  get stderrLines(): number {
    return this.shape?.buckets.reduce((sum, bucket) => sum + bucket.stderr_lines, 0) ?? 0;
  }
}
