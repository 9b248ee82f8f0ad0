/** Which rows stand around a line: lines, places for those that are not read, and what stands between them; pure. */
import type { LogLine, LostOutput } from './line';
import type { Row } from './log-source';

/** What stands between lines. */
export interface Mark {
  key: string;
  className: string;
  text: string;
}

export type Spec =
  | { key: string; kind: 'line'; position: number; line: LogLine }
  | { key: string; kind: 'unknown'; position: number }
  | { key: string; kind: 'mark'; mark: Mark }
  | { key: string; kind: 'cursor' };

/** Where the rows come from. */
export interface RowSource {
  readonly first: number;
  readonly last: number;
  readonly isDense: boolean;
  readonly isBoundedAtEnd: boolean;
  readonly isCutAtStart: boolean;
  atOrAfter(position: number): Row | null;
  atOrBefore(position: number): Row | null;
}

export interface MarkTexts {
  /** Whether something may still be printed: a cursor stands at the end. */
  hasCursor: boolean;
  /** What stands before a line; `previous` is the line above it, where that is known. */
  marksBefore(line: LogLine, previous: LogLine | null): Mark[];
  /** What stands after the last line. */
  marksAfter(): Mark[];
  /** What is told of output that is gone between two lines. */
  lostText(lost: LostOutput, before: number | null, after: number): string;
}

export interface RowsAround {
  specs: Spec[];
  /** The key of the row at the line, or of the first one after it; `null` where there is none. */
  anchorKey: string | null;
  /** Whether there is nothing before and after these rows, or nobody knows yet what. */
  hasStart: boolean;
  hasEnd: boolean;
}

/** Rows around a line, so many at most on each side. */
export function rowsAround(
  source: RowSource,
  texts: MarkTexts,
  line: number,
  above: number,
  below: number,
): RowsAround {
  const after = walk(source, line, 1, below);
  const before = walk(source, Math.min(line - 1, source.last), -1, above);
  const rows = [...before.rows.reverse(), ...after.rows];
  const first = after.rows[0];
  return {
    specs: withMarks(source, texts, rows, before.isComplete, after.isComplete),
    anchorKey: first ? keyOf(first) : null,
    hasStart: before.isComplete || before.isBlocked,
    hasEnd: after.isComplete || after.isBlocked,
  };
}

interface Walked {
  rows: Row[];
  /** Whether there are no more. */
  isComplete: boolean;
  /** Whether it ended at a part of which nothing is known. */
  isBlocked: boolean;
}

/** Rows in a direction. */
export function walk(source: RowSource, from: number, direction: 1 | -1, count: number): Walked {
  const rows: Row[] = [];
  let at = from;
  while (rows.length < count) {
    const row = direction > 0 ? source.atOrAfter(at) : source.atOrBefore(at);
    if (!row) return { rows, isComplete: true, isBlocked: false };
    rows.push(row);
    // In a part of which nothing is known, only a view of all lines knows how many there are.
    if (row.kind === 'unknown' && !source.isDense) return { rows, isComplete: false, isBlocked: true };
    at = row.position + direction;
  }
  return { rows, isComplete: direction > 0 ? at > source.last : at < source.first, isBlocked: false };
}

function withMarks(
  source: RowSource,
  texts: MarkTexts,
  rows: readonly Row[],
  hasStart: boolean,
  hasEnd: boolean,
): Spec[] {
  const specs: Spec[] = [];
  const add = (mark: Mark) => specs.push({ key: mark.key, kind: 'mark', mark });
  let previous: LogLine | null = null;
  for (const [index, row] of rows.entries()) {
    if (row.kind === 'unknown') {
      specs.push({ key: keyOf(row), kind: 'unknown', position: row.position });
      previous = null;
      continue;
    }
    const gap = gapMark(texts, row.line, previous, hasStart && index === 0 && source.isCutAtStart);
    if (gap) add(gap);
    for (const mark of texts.marksBefore(row.line, previous)) add(mark);
    specs.push({ key: keyOf(row), kind: 'line', position: row.position, line: row.line });
    previous = row.line;
  }
  if (!hasEnd) return specs;
  for (const mark of texts.marksAfter()) add(mark);
  if (texts.hasCursor && !source.isBoundedAtEnd) specs.push({ key: 'cursor', kind: 'cursor' });
  return specs;
}

function gapMark(texts: MarkTexts, line: LogLine, previous: LogLine | null, isCut: boolean): Mark | null {
  const lost = line.gap ?? (isCut ? { bytes: Math.max(0, line.offset), lostBytes: 0 } : null);
  if (!lost) return null;
  const before = previous?.number ?? (isCut ? 0 : null);
  return { key: `g${line.number}`, className: 'log-gap', text: texts.lostText(lost, before, line.number) };
}

function keyOf(row: Row): string {
  return row.kind === 'line' ? `l${row.position}` : `u${row.position}`;
}
