/** Reads pieces of the output: of all lines, of those of some streams, or of those that match. */
import type { LineSearch } from '../../../api/types';
import { type LinePage, type LogLine, type StreamName, toPage } from './line';
import { fetchLines, fetchMatches, type Match } from './output-requests';

/** Lines of one request. */
export const PAGE_LINES = 256;

export interface LineFilter {
  /** Only these; all where none is named. */
  streams: readonly StreamName[];
  /** Only lines with a match. */
  match: Match | null;
}

export interface LineReader {
  /** Whether nearly every number has a line, so that places for those that are not known can be shown. */
  readonly isDense: boolean;
  /** The piece that begins with, or around, a number. */
  forward(from: number, signal: AbortSignal): Promise<LinePage>;
  /** The piece that ends with, or around, a number. */
  backward(to: number, signal: AbortSignal): Promise<LinePage>;
}

export function createReader(id: string, filter: LineFilter): LineReader {
  if (filter.match) return matchReader(id, filter.match, filter.streams);
  return filter.streams.length > 0 ? streamReader(id, filter.streams) : pageReader(id);
}

/** The first number of the page that a number is on: views that move read the same pages. */
export function pageStart(number: number): number {
  return Math.floor((number - 1) / PAGE_LINES) * PAGE_LINES + 1;
}

function pageReader(id: string): LineReader {
  const page = async (number: number, signal: AbortSignal) => {
    const from = pageStart(number);
    return toPage(await fetchLines(id, { line: from }, PAGE_LINES, [], signal), from);
  };
  return { isDense: true, forward: page, backward: page };
}

/** The pattern that every line matches. */
const EVERY_LINE: Match = { text: '^', regex: true, matchCase: true };

function streamReader(id: string, streams: readonly StreamName[]): LineReader {
  const forward = async (from: number, signal: AbortSignal) =>
    toPage(await fetchLines(id, { line: from }, PAGE_LINES, streams, signal), from);
  return {
    isDense: false,
    forward,
    backward: async (to, signal) => {
      // Pages go forward only: a search finds where this one begins.
      const range = { from: to, direction: 'previous' as const, limit: PAGE_LINES };
      const found = await fetchMatches(id, EVERY_LINE, range, streams, signal);
      const first = found.matches[0];
      if (!first) return matchPage(found, (found.next_line ?? 0) + 1, to);
      const page = await forward(first.line, signal);
      // Between the first one found and where the search ended there is none.
      return found.next_line === undefined ? { ...page, from: found.first_line } : page;
    },
  };
}

function matchReader(id: string, match: Match, streams: readonly StreamName[]): LineReader {
  return {
    isDense: false,
    forward: async (from, signal) => {
      const found = await fetchMatches(id, match, { from, limit: PAGE_LINES }, streams, signal);
      return matchPage(found, from, found.next_line === undefined ? found.ended_lines : found.next_line - 1);
    },
    backward: async (to, signal) => {
      const range = { from: to, direction: 'previous' as const, limit: PAGE_LINES };
      const found = await fetchMatches(id, match, range, streams, signal);
      return matchPage(found, (found.next_line ?? 0) + 1, to);
    },
  };
}

function matchPage(found: LineSearch, from: number, to: number): LinePage {
  const all = found.matches.map(matchLine);
  return {
    firstLine: found.first_line,
    ended: found.ended_lines,
    lines: all.filter((line) => line.number <= found.ended_lines),
    open: [],
    from,
    to: Math.min(to, found.ended_lines),
    damagedFrom: found.damaged_from,
  };
}

function matchLine(found: LineSearch['matches'][number]): LogLine {
  return {
    number: found.line,
    at: Date.parse(found.at),
    stream: found.stream,
    text: found.text,
    offset: -1,
    terminated: true,
    clippedBytes: (found.clipped_bytes ?? 0) - (found.skipped_bytes ?? 0),
    skippedBytes: found.skipped_bytes ?? 0,
    binary: found.text.includes('\0'),
  };
}
