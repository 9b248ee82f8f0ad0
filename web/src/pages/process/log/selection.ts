/** What is selected in the log: places of lines, whether they are in view or not; pure. */
import { parseLine } from './ansi';
import type { LogLine } from './line';
import { lastState } from './shown-text';

/** A place in a line: after so many characters of what is shown of it. */
export interface Place {
  line: number;
  column: number;
}

export interface TextSelection {
  /** Where it began. */
  anchor: Place;
  focus: Place;
}

export interface LineRange {
  from: number;
  to: number;
}

export function comparePlaces(a: Place, b: Place): number {
  return a.line - b.line || a.column - b.column;
}

/** Its places in the order of the output. */
export function ordered(selection: TextSelection): [start: Place, end: Place] {
  const { anchor, focus } = selection;
  return comparePlaces(anchor, focus) <= 0 ? [anchor, focus] : [focus, anchor];
}

export function isEmpty(selection: TextSelection): boolean {
  return comparePlaces(selection.anchor, selection.focus) === 0;
}

/** The part of a selection on the lines of a range; `null` where none is. */
export function clip(selection: TextSelection, range: LineRange): TextSelection | null {
  const [start, end] = ordered(selection);
  if (end.line < range.from || start.line > range.to) return null;
  const first = start.line < range.from ? { line: range.from, column: 0 } : start;
  const last = end.line > range.to ? { line: range.to, column: Number.POSITIVE_INFINITY } : end;
  return selection.anchor === start ? { anchor: first, focus: last } : { anchor: last, focus: first };
}

/** The range from the line that was chosen first to another. */
export function rangeTo(first: number, other: number): LineRange {
  return { from: Math.min(first, other), to: Math.max(first, other) };
}

/** `48100` or `48100-48120`, as in addresses. */
export function formatRange(range: LineRange): string {
  return range.from === range.to ? String(range.from) : `${range.from}-${range.to}`;
}

export function parseRange(text: string | null): LineRange | null {
  const match = /^([1-9]\d{0,14})(?:-([1-9]\d{0,14}))?$/.exec(text ?? '');
  if (!match) return null;
  const from = Number(match[1]);
  return rangeTo(from, Number(match[2] ?? match[1]));
}

/** What is copied of a line: what is seen of it, without control sequences, numbers and times, and all of it. */
export function copiedText(line: LogLine): string {
  const text = parseLine(lastState(line.text).text).text;
  return line.head ? copiedText(line.head) + text : text;
}

/** The text of a selection, from lines of its range in their order. */
export function selectedText(selection: TextSelection, lines: readonly LogLine[]): string {
  const [start, end] = ordered(selection);
  return lines
    .map((line) => {
      const text = copiedText(line);
      const from = line.number === start.line ? start.column : 0;
      const to = line.number === end.line ? end.column : text.length;
      return text.slice(from, Math.max(from, to));
    })
    .join('\n');
}
