/**
 * Where the scrollbar stands. The truth of the viewer is a line and its distance from the upper edge; the scrollbar
 * stands for line numbers, not for heights, which nobody knows of lines that were not read.
 */

/** What Chromium, Firefox and Safari all lay out without cutting it. */
export const SPACER_LIMIT = 16_000_000;

/** A line, and where its upper edge is below that of the view, in pixels. */
export interface Anchor {
  line: number;
  px: number;
}

/** The numbers that there are, and the sizes. */
export interface Extent {
  first: number;
  /** The last number; less than `first` where there is none. */
  last: number;
  rowHeight: number;
  viewHeight: number;
  /** What stands after the last line, in pixels. */
  tailHeight?: number;
}

function contentHeight(extent: Extent): number {
  return Math.max(0, extent.last - extent.first + 1) * extent.rowHeight + (extent.tailHeight ?? 0);
}

/** The height of the element that makes the scrollbar. */
export function spacerHeight(extent: Extent): number {
  return Math.min(Math.max(contentHeight(extent), extent.viewHeight), SPACER_LIMIT);
}

/** Pixels of the scrollbar's element for one of the content; 1 up to {@link SPACER_LIMIT}. */
function scale(extent: Extent): number {
  const content = contentHeight(extent) - extent.viewHeight;
  return content <= 0 ? 1 : (spacerHeight(extent) - extent.viewHeight) / content;
}

/** The scroll position of an anchor. */
export function scrollTopOf(extent: Extent, anchor: Anchor): number {
  const px = (anchor.line - extent.first) * extent.rowHeight - anchor.px;
  const most = spacerHeight(extent) - extent.viewHeight;
  return Math.max(0, Math.min(most, px * scale(extent)));
}

/** The anchor of a scroll position. */
export function anchorAt(extent: Extent, scrollTop: number): Anchor {
  const px = scrollTop / scale(extent);
  const rows = Math.floor(px / extent.rowHeight);
  const line = Math.max(extent.first, Math.min(extent.first + rows, extent.last));
  return { line, px: (line - extent.first) * extent.rowHeight - px };
}

/** A scroll of so many views at once is a jump of the thumb; less is a movement of the content. */
const JUMP_VIEWS = 2;

export function isJump(extent: Extent, distance: number): boolean {
  // Where both mean the same, a jump is exact.
  return Math.abs(distance) > extent.viewHeight * JUMP_VIEWS;
}

/** Rows that were laid out. */
export interface LaidOut {
  height: number;
  /** Whether there is nothing before and after them. */
  hasStart: boolean;
  hasEnd: boolean;
}

export interface Placed {
  top: number;
  /** What is still empty above and below them; 0 or less where nothing is. */
  roomAbove: number;
  roomBelow: number;
}

/** Where the rows stand that should begin at `wanted`: without room at the ends, where there are rows to fill it. */
export function placeRows(wanted: number, rows: LaidOut, viewHeight: number): Placed {
  let top = wanted;
  if (rows.hasEnd && top + rows.height < viewHeight) top = viewHeight - rows.height;
  if (rows.hasStart && top > 0) top = 0;
  return {
    top,
    roomAbove: rows.hasStart ? 0 : top,
    roomBelow: rows.hasEnd ? 0 : viewHeight - top - rows.height,
  };
}
