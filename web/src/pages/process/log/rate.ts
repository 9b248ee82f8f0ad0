/** How many lines come in a second, over the last two; pure. */

const WINDOW_MS = 2_000;

export class RateMeter {
  #samples: { at: number; count: number }[] = [];

  /** Takes how many there are now. */
  add(at: number, count: number): void {
    this.#samples.push({ at, count });
    while (this.#samples.length > 2 && (this.#samples[1]?.at ?? at) <= at - WINDOW_MS) this.#samples.shift();
  }

  /** `null` before two samples. */
  get perSecond(): number | null {
    const [first, last] = [this.#samples[0], this.#samples.at(-1)];
    if (!first || !last || last.at - first.at < 500) return null;
    return Math.round(((last.count - first.count) * 1000) / (last.at - first.at));
  }
}
