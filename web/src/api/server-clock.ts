/** The daemon's clock, by what its answers tell of it: the browser's may be wrong. */

/** A `Date` is in whole seconds, and a server may write the same text for one more. */
const DATE_ERROR_MS = 2_000;

/** How far the clock of a server is ahead of the browser's; pure. */
export class ClockOffset {
  #least = Number.NEGATIVE_INFINITY;
  #most = Number.POSITIVE_INFINITY;

  /**
   * Takes the server's time of an answer, which is at most `error` milliseconds early, and the browser's times at
   * which it was asked for and arrived.
   */
  observe(time: number, error: number, asked: number, arrived: number): void {
    const least = time - arrived;
    const most = time + error - asked;
    const fits = least <= this.#most && most >= this.#least;
    // Otherwise one of the clocks was set, or they drift apart.
    this.#least = fits ? Math.max(this.#least, least) : least;
    this.#most = fits ? Math.min(this.#most, most) : most;
  }

  /** In milliseconds; 0 while the clocks may agree. */
  get ms(): number {
    if (this.#least <= 0 && this.#most >= 0) return 0;
    return Math.round((this.#least + this.#most) / 2);
  }
}

const offset = new ClockOffset();

/** Takes the `Date` of an answer. `asked`: the browser's time of the request. */
export function observeServerDate(headers: Headers, asked: number): void {
  const date = Date.parse(headers.get('Date') ?? '');
  if (!Number.isNaN(date)) offset.observe(date, DATE_ERROR_MS, asked, Date.now());
}

/** Takes the daemon's time at which it answered. `asked`: the browser's time of the request. */
export function observeServerTime(time: number, asked: number): void {
  offset.observe(time, 0, asked, Date.now());
}

/** The present time by the clock that wrote the times of the answers, as `Date.now()`. */
export function serverNow(): number {
  return Date.now() + offset.ms;
}
