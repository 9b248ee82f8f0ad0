/** The strip that shows how much was printed when; pure. */
import type { OutputShape } from '../../../api/types';
import type { Failure } from './failure-index';
import type { ViewPosition } from './log-view';

export interface Bar {
  lines: number;
  stderr: number;
  errors: number;
  /** From 0 to 1. */
  height: number;
  /** When its slice begins, in milliseconds. */
  from: number;
}

/** A bar that is not empty is seen. */
const LEAST = 0.08;

export function stripBars(shape: OutputShape, failures: readonly Failure[]): Bar[] {
  const times = timesOf(shape);
  if (!times) return [];
  const { from, step } = times;
  const errors = new Array<number>(shape.buckets.length).fill(0);
  for (const { at } of failures) {
    const index = Math.min(shape.buckets.length - 1, Math.max(0, Math.floor((at - from) / step)));
    errors[index] = (errors[index] ?? 0) + 1;
  }
  // A few slices with very many lines would flatten all others.
  const most = Math.sqrt(Math.max(1, ...shape.buckets.map((bucket) => bucket.lines)));
  return shape.buckets.map((bucket, index) => ({
    lines: bucket.lines,
    stderr: bucket.stderr_lines,
    errors: errors[index] ?? 0,
    height: bucket.lines === 0 ? 0 : Math.max(LEAST, Math.sqrt(bucket.lines) / most),
    from: from + index * step,
  }));
}

/** The beginning and the length of the slices, in milliseconds. */
function timesOf(shape: OutputShape): { from: number; step: number } | null {
  if (!shape.from || !shape.to || shape.buckets.length === 0) return null;
  const from = Date.parse(shape.from);
  return { from, step: Math.max(1, Date.parse(shape.to) - from) / shape.buckets.length };
}

/** The part of the strip that is in view, from 0 to 1; `null` where that is not known. */
export function stripView(
  shape: OutputShape,
  position: ViewPosition | null,
): { from: number; to: number } | null {
  const times = timesOf(shape);
  if (!times || !position) return null;
  const place = (at: number | undefined, line: number) =>
    at === undefined ? lineShare(shape, line) : (at - times.from) / (times.step * shape.buckets.length);
  const clamp = (value: number) => Math.max(0, Math.min(1, value));
  const from = clamp(place(position.top?.at, position.topPosition));
  return { from, to: Math.max(from, clamp(place(position.bottom?.at, position.bottomPosition))) };
}

/** About where a line is in time, by how many lines were printed before. */
export function lineShare(shape: OutputShape, line: number): number {
  let number = shape.first_line;
  for (const [index, bucket] of shape.buckets.entries()) {
    if (line < number + bucket.lines) {
      const within = (line - number) / Math.max(1, bucket.lines);
      return (index + Math.max(0, within)) / shape.buckets.length;
    }
    number += bucket.lines;
  }
  return 1;
}

/** The time at a place of the strip, in milliseconds. */
export function timeAt(shape: OutputShape, share: number): number | null {
  const times = timesOf(shape);
  return times && times.from + times.step * shape.buckets.length * share;
}
