/** The pages of the history that a person came from, for the way back; pure. */
import type { HistoryView } from './history-query';

export class WayBack {
  /** What the page before was before, by the page that it led to. */
  readonly #newer = new Map<string, number | null>();

  /** Remembers that a page leads to the one before `next`. */
  leave(view: HistoryView, next: number): void {
    this.#newer.set(keyOf(view, next), view.before);
  }

  /** What the next newer page is before, `null` for the newest; `undefined` where it is not known. */
  newer(view: HistoryView): number | null | undefined {
    return this.#newer.get(keyOf(view, view.before));
  }
}

/** What tells a page from all others: the filter and the position. */
function keyOf(view: HistoryView, before: number | null): string {
  return JSON.stringify({ ...view, before, id: '' });
}
