/** What a plot shows; pure. */

/** A colour of the theme, by the name of its token. */
export type PlotColour =
  | 'accent'
  | 'running'
  | 'ready'
  | 'stopping'
  | 'failed'
  | 'waiting'
  | 'field'
  | 'ink3';

export interface PlotSeries {
  label: string;
  /** One for each time; `null` where nothing is known, which leaves a gap. */
  values: readonly (number | null)[];
  colour: PlotColour;
  /** Whether the area under it is tinted. */
  filled?: boolean;
}

/** A line across the plot, such as a limit. */
export interface PlotLimit {
  value: number;
  label: string;
}

/** Something that happened, as a notch at the upper edge that leads to more. */
export interface PlotMark {
  /** Milliseconds, as `Date.now()`. */
  at: number;
  label: string;
  href: string;
}

/** The first and the last time that is shown, in milliseconds. */
export type PlotRange = readonly [from: number, to: number];

/** A limit that is so many times higher than everything measured would flatten the curve; it is left to the text. */
const LIMIT_REACH = 4;
/** The room above the highest value. */
const HEADROOM = 1.12;

/** The highest value that is known; 0 where there is none. */
export function highest(series: readonly PlotSeries[]): number {
  let top = 0;
  for (const { values } of series) {
    for (const value of values) if (value !== null && value > top) top = value;
  }
  return top;
}

/** The limits that are drawn beside such values. */
export function drawnLimits(limits: readonly PlotLimit[], top: number): PlotLimit[] {
  return limits.filter((limit) => limit.value > 0 && limit.value <= top * LIMIT_REACH);
}

/** The upper end of the value axis. `least`: it reaches at least so far. */
export function axisTop(series: readonly PlotSeries[], limits: readonly PlotLimit[], least: number): number {
  const top = highest(series);
  const drawn = drawnLimits(limits, top).map((limit) => limit.value);
  return Math.max(top * HEADROOM, ...drawn.map((value) => value * HEADROOM), least);
}

/** The index of the time that is nearest; `null` where there are no times. */
export function nearestIndex(times: readonly number[], at: number): number | null {
  if (times.length === 0) return null;
  let low = 0;
  let high = times.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] ?? 0) < at) low = middle + 1;
    else high = middle;
  }
  const before = times[low - 1];
  const found = times[low] ?? 0;
  return before !== undefined && at - before < found - at ? low - 1 : low;
}

/** The marks within a range, each with its place from 0 to 1. */
export function placedMarks(
  marks: readonly PlotMark[],
  [from, to]: PlotRange,
): (PlotMark & { place: number })[] {
  return marks
    .filter((mark) => mark.at >= from && mark.at <= to)
    .map((mark) => ({ ...mark, place: (mark.at - from) / Math.max(1, to - from) }));
}
