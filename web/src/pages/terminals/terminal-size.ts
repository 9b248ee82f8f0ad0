/** Sizes of terminals: how many cells fit, and how small letters are that show all of a fixed size; pure. */
import type { TermSize } from '../../api/types';

const COLS = { min: 2, max: 1_000 };
const ROWS = { min: 1, max: 1_000 };
/** The letters of terminals. */
export const TERMINAL_FONT = '"JetBrains Mono Variable", ui-monospace, monospace';
/** Letters are never made smaller than that to show the whole of a terminal, in pixels. */
export const LEAST_FONT = 6;

export interface Box {
  width: number;
  height: number;
}

/** The cells of a box. */
export function cellsThatFit(box: Box, cell: Box): TermSize {
  if (cell.width <= 0 || cell.height <= 0) return { cols: COLS.min, rows: ROWS.min };
  return {
    cols: clamp(Math.floor(box.width / cell.width), COLS),
    rows: clamp(Math.floor(box.height / cell.height), ROWS),
  };
}

/**
 * The size of letters at which a terminal of this size is inside the box, no larger than the one that is wished.
 * `cellAtWished` is the size of a cell at the wished one.
 */
export function fontThatFits(size: TermSize, box: Box, cellAtWished: Box, wished: number): number {
  const scale = Math.min(
    box.width / (size.cols * cellAtWished.width),
    box.height / (size.rows * cellAtWished.height),
  );
  if (!Number.isFinite(scale)) return wished;
  const halves = Math.floor(wished * Math.min(1, scale) * 2) / 2;
  return Math.max(LEAST_FONT, halves);
}

/** The size of a cell with letters of this size, before a terminal is there to tell. */
export function cellOf(fontSize: number): Box {
  const context = document.createElement('canvas').getContext('2d');
  if (!context) return { width: fontSize * 0.6, height: fontSize * 1.3 };
  context.font = `${fontSize}px ${TERMINAL_FONT}`;
  const { width, fontBoundingBoxAscent, fontBoundingBoxDescent } = context.measureText('W');
  return { width, height: Math.ceil(fontBoundingBoxAscent + fontBoundingBoxDescent) };
}

/** `80 × 24`, as it is written everywhere. */
export function sizeText(size: TermSize): string {
  return `${size.cols} × ${size.rows}`;
}

function clamp(value: number, { min, max }: { min: number; max: number }): number {
  return Math.min(max, Math.max(min, value));
}
