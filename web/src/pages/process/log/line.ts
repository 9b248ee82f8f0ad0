/** Lines of output as the viewer keeps them. */
import { byteText, type NumberedLine, type NumberedPage } from '../../../api/types';

export type StreamName = NumberedLine['stream'];

/** Output that is gone. */
export interface LostOutput {
  bytes: number;
  /** How many of these were lost, not dropped on purpose. */
  lostBytes: number;
}

export interface LogLine {
  /** Its number among the lines of all streams, from 1. */
  number: number;
  /** When its first byte was read, in milliseconds since 1970. */
  at: number;
  stream: StreamName;
  /** As it was printed, with its control sequences, without its end. */
  text: string;
  /** The offset of its first byte. */
  offset: number;
  /** Whether its end was read. */
  terminated: boolean;
  /** Bytes that are not in `text`. */
  clippedBytes: number;
  /** Bytes of the line before `text`, where only the part around a match is known. */
  skippedBytes: number;
  /** Whether it has bytes that are no text. */
  binary: boolean;
  /** The part of this line before output that is gone within it. */
  head?: LogLine;
  /** Output that is gone right before it. */
  gap?: LostOutput;
}

/** What a request for lines tells. */
export interface LinePage {
  /** The oldest line that is kept. */
  firstLine: number;
  /** How many lines have ended. */
  ended: number;
  /** Lines that have ended, ascending. */
  lines: LogLine[];
  /** Lines that have not, at most one of each stream. */
  open: LogLine[];
  /** All lines of these numbers that there are, are among `lines`; empty where `to` is less than `from`. */
  from: number;
  to: number;
  /** Whether nothing is added any more; absent where the request does not tell. */
  finished?: boolean;
  /** Output that is gone at the end. */
  gapAfter?: LostOutput | undefined;
  /** The offset from which on files are damaged. */
  damagedFrom?: number | undefined;
}

type Gap = NonNullable<NumberedPage['gaps']>[number];

function lost(gap: Gap): LostOutput {
  return { bytes: gap.to - gap.from, lostBytes: gap.lost_bytes ?? 0 };
}

export function toLine(body: NumberedLine): LogLine {
  const text = byteText(body.text);
  return {
    number: body.line,
    at: Date.parse(body.at),
    stream: body.stream,
    text,
    offset: body.offset,
    terminated: body.terminated,
    clippedBytes: body.clipped_bytes ?? 0,
    skippedBytes: 0,
    binary: isBinary(body.text, text),
  };
}

/** Whether a line holds bytes that no text has: NUL, or some that are no UTF-8. */
function isBinary(bytes: NumberedLine['text'], text: string): boolean {
  return typeof bytes !== 'string' || text.includes('\0');
}

/**
 * A page as the viewer keeps it.
 *
 * @param from the first number that was asked for; `null` for the last lines
 */
export function toPage(body: NumberedPage, from: number | null): LinePage {
  const all = withGaps(body.lines.map(toLine), body.gaps ?? []);
  const lines = all.filter((line) => line.number <= body.ended_lines);
  const firstFound = lines[0]?.number;
  return {
    firstLine: body.first_line,
    ended: body.ended_lines,
    lines,
    open: body.more ? [] : all.filter((line) => line.number > body.ended_lines),
    from: from ?? firstFound ?? body.ended_lines + 1,
    to: body.more ? body.next_line - 1 : body.ended_lines,
    finished: body.finished,
    gapAfter: body.gap_after && lost(body.gap_after),
    damagedFrom: body.damaged_from,
  };
}

/** The lines with what is gone before them; the two parts of a line that lost its middle are one. */
function withGaps(lines: LogLine[], gaps: Gap[]): LogLine[] {
  for (const gap of gaps) {
    const after = lines.find((line) => line.offset >= gap.to);
    if (after) after.gap = lost(gap);
  }
  const joined: LogLine[] = [];
  for (const line of lines) {
    const before = joined.at(-1);
    const isRest = before !== undefined && before.number === line.number && before.stream === line.stream;
    if (isRest && line.gap) joined[joined.length - 1] = { ...line, head: before };
    else joined.push(line);
  }
  return joined;
}

/** About how much memory a line takes, in bytes. */
export function lineSize(line: LogLine): number {
  return 160 + line.text.length * 2 + (line.head ? lineSize(line.head) : 0);
}
