/** Requests for output by line number. */
import { api, body } from '../../../api/client';
import type { FailureLines, LineSearch, NumberedPage, OutputShape } from '../../../api/types';
import type { StreamName } from './line';

/** What is searched for. */
export interface Match {
  text: string;
  regex: boolean;
  matchCase: boolean;
}

/** Where a page begins. */
export type PageStart = { line: number } | { at: string } | { last: number };

export type Direction = 'next' | 'previous';

export interface SearchRange {
  from?: number;
  direction?: Direction;
  limit?: number;
  countOnly?: boolean;
}

/** Lines of these streams; of all where none is named. */
export function fetchLines(
  id: string,
  start: PageStart,
  count: number,
  streams: readonly StreamName[],
  signal?: AbortSignal,
): Promise<NumberedPage> {
  const query = { ...start, count, ...streamQuery(streams) };
  const init = { params: { path: { id }, query }, ...(signal ? { signal } : {}) };
  return body(api.GET('/api/v1/executions/{id}/output/lines', init));
}

export function fetchMatches(
  id: string,
  match: Match,
  range: SearchRange,
  streams: readonly StreamName[],
  signal?: AbortSignal,
): Promise<LineSearch> {
  const query = {
    q: match.text,
    mode: match.regex ? ('regex' as const) : ('text' as const),
    ignore_case: !match.matchCase,
    dir: range.direction ?? ('next' as const),
    count_only: range.countOnly ?? false,
    ...(range.from === undefined ? {} : { from: range.from }),
    ...(range.limit === undefined ? {} : { limit: range.limit }),
    ...streamQuery(streams),
  };
  const init = { params: { path: { id }, query }, ...(signal ? { signal } : {}) };
  return body(api.GET('/api/v1/executions/{id}/output/find', init));
}

export function fetchFailures(
  id: string,
  from: number,
  direction: Direction,
  limit: number,
  signal?: AbortSignal,
): Promise<FailureLines> {
  const query = { from, dir: direction, limit };
  const init = { params: { path: { id }, query }, ...(signal ? { signal } : {}) };
  return body(api.GET('/api/v1/executions/{id}/output/failures', init));
}

export function fetchShape(id: string, buckets: number): Promise<OutputShape> {
  return body(
    api.GET('/api/v1/executions/{id}/output/shape', { params: { path: { id }, query: { buckets } } }),
  );
}

function streamQuery(streams: readonly StreamName[]): { stream?: StreamName[] } {
  return streams.length > 0 ? { stream: [...streams] } : {};
}
