/** Which rows of a long list are drawn, where all rows have the same height; pure. */

export interface RowWindowInput {
  /** How far the first row is above the upper edge of the view, in pixels; negative: below it. */
  top: number;
  /** The height of the view, in pixels. */
  height: number;
  rowHeight: number;
  count: number;
  /** Rows that are drawn beyond each edge, so that scrolling shows no gap. */
  overscan: number;
}

export interface RowRange {
  /** The first row that is drawn. */
  first: number;
  /** The row after the last that is drawn. */
  end: number;
}

/** The rows that are drawn. */
export function drawnRows({ top, height, rowHeight, count, overscan }: RowWindowInput): RowRange {
  const first = Math.floor(top / rowHeight) - overscan;
  const end = Math.ceil((top + height) / rowHeight) + overscan;
  return { first: clamp(first, 0, count), end: clamp(end, 0, count) };
}

/** The rows of which at least half is in the view; `first` is `end` where there are none. */
export function visibleRows({ top, height, rowHeight, count }: Omit<RowWindowInput, 'overscan'>): RowRange {
  const first = clamp(Math.round(top / rowHeight), 0, count);
  const end = clamp(Math.round((top + height) / rowHeight), first, count);
  return { first, end };
}

/** The indices that are drawn: those of the range, and `kept`, which may be far away. */
export function drawnIndices({ first, end }: RowRange, kept: number): number[] {
  const indices = Array.from({ length: Math.max(0, end - first) }, (_, offset) => first + offset);
  if (kept >= 0 && kept < first) return [kept, ...indices];
  return kept >= end ? [...indices, kept] : indices;
}

/** How far to scroll, in pixels, so that a row is in the view as a whole; 0 where it is. */
export function scrollToRow(index: number, view: { top: number; height: number; rowHeight: number }): number {
  const start = index * view.rowHeight - view.top;
  if (start < 0) return start;
  const below = start + view.rowHeight - view.height;
  return below > 0 ? Math.min(below, start) : 0;
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}
