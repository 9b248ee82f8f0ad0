/**
 * The order in which rows stand. Once sorted, a row keeps its place until the person sorts again, also when its state
 * changes; new rows come in at their place, or wait while the person is at the list; pure.
 */
import type { Compare, Row } from './rows';

export interface RowOrder {
  /** Full ids, as they stand. */
  ids: readonly string[];
  /** How many rows wait to come in. */
  held: number;
}

export const NO_ROWS: RowOrder = { ids: [], held: 0 };

/** All rows that match, sorted. */
export function sortRows(matching: readonly Row[], compare: Compare): RowOrder {
  return { ids: [...matching].sort(compare).map(({ uuid }) => uuid), held: 0 };
}

/** Those that stand already keep their place; others come in before the first that they precede. */
export function insertRows(order: RowOrder, matching: ReadonlyMap<string, Row>, compare: Compare): RowOrder {
  const standing = order.ids.flatMap((id) => matching.get(id) ?? []);
  const known = new Set(order.ids);
  const added = [...matching.values()].filter(({ uuid }) => !known.has(uuid)).sort(compare);
  const ids: string[] = [];
  let next = 0;
  for (const row of standing) {
    for (let one = added[next]; one && compare(one, row) < 0; one = added[next]) {
      ids.push(one.uuid);
      next += 1;
    }
    ids.push(row.uuid);
  }
  for (const row of added.slice(next)) ids.push(row.uuid);
  return sameOrder(order, { ids, held: 0 });
}

/** Nothing moves: new rows are counted, and one that no longer matches stays as long as it exists. */
export function holdRows(
  order: RowOrder,
  matching: ReadonlyMap<string, Row>,
  all: ReadonlyMap<string, Row>,
): RowOrder {
  const ids = order.ids.filter((id) => all.has(id));
  const known = new Set(ids);
  let held = 0;
  for (const uuid of matching.keys()) if (!known.has(uuid)) held += 1;
  return sameOrder(order, { ids, held });
}

/** Whether another sort would move a row. */
export function isStale({ ids }: RowOrder, all: ReadonlyMap<string, Row>, compare: Compare): boolean {
  let before: Row | undefined;
  for (const id of ids) {
    const row = all.get(id);
    if (!row) continue;
    if (before && compare(before, row) > 0) return true;
    before = row;
  }
  return false;
}

/** The row that gets the focus when the one that has it disappears: the next that stays, else the last before it. */
export function rowAfterRemoval(
  before: readonly string[],
  id: string,
  after: readonly string[],
): string | null {
  const staying = new Set(after);
  const index = before.indexOf(id);
  if (index < 0) return null;
  const next = before.slice(index + 1).find((other) => staying.has(other));
  return next ?? before.slice(0, index).findLast((other) => staying.has(other)) ?? null;
}

function sameOrder(before: RowOrder, after: RowOrder): RowOrder {
  const same =
    before.ids.length === after.ids.length && before.ids.every((id, index) => id === after.ids[index]);
  if (!same) return after;
  return before.held === after.held ? before : { ids: before.ids, held: after.held };
}
