/** The rows that are selected, by full id. */
import { SvelteSet } from 'svelte/reactivity';

/** The ids between two, both included, in the order in which they stand; only the second where the first is gone. */
export function idsBetween(ids: readonly string[], from: string | null, to: string): string[] {
  const end = ids.indexOf(to);
  if (end < 0) return [];
  const start = from === null ? -1 : ids.indexOf(from);
  if (start < 0) return [to];
  return ids.slice(Math.min(start, end), Math.max(start, end) + 1);
}

export class Selection {
  readonly ids = new SvelteSet<string>();
  /** Where a range begins. */
  #anchor: string | null = null;

  get size(): number {
    return this.ids.size;
  }

  has(id: string): boolean {
    return this.ids.has(id);
  }

  toggle(id: string): void {
    if (!this.ids.delete(id)) this.ids.add(id);
    this.#anchor = id;
  }

  /** Selects from the row that was selected last to this one. */
  extendTo(id: string, shown: readonly string[]): void {
    for (const one of idsBetween(shown, this.#anchor, id)) this.ids.add(one);
    this.#anchor = id;
  }

  /** Selects all that are shown, or none where all are. */
  toggleAll(shown: readonly string[]): void {
    const all = shown.every((id) => this.ids.has(id));
    this.clear();
    if (!all) for (const id of shown) this.ids.add(id);
  }

  /** Leaves out those that are gone. */
  keep(exists: (id: string) => boolean): void {
    for (const id of this.ids) if (!exists(id)) this.ids.delete(id);
  }

  clear(): void {
    this.ids.clear();
    this.#anchor = null;
  }
}
