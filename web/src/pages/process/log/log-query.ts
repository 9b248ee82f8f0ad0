/** What of the log is shown, as the address of the page tells it; pure. */
import type { LineTime } from '../../../app/preferences.svelte';
import type { StreamName } from './line';
import type { Match } from './output-requests';
import { type LineRange, parseRange } from './selection';

export type StreamChoice = 'both' | 'out' | 'err';

export interface LogQuery {
  stream: StreamChoice;
  match: Match | null;
  /** Only lines with a match. */
  only: boolean;
  /** Lines that are marked; the first of them is shown. */
  chosen: LineRange | null;
  since: string | null;
  until: string | null;
  /** Absent: as the person prefers. */
  wraps: boolean | null;
  time: LineTime | null;
}

const TIMES: Record<string, LineTime> = { off: 'off', abs: 'clock', rel: 'elapsed' };

export function parseLogQuery(query: URLSearchParams): LogQuery {
  const text = query.get('q') ?? '';
  const stream = query.get('stream');
  const wrap = query.get('wrap');
  return {
    stream: stream === 'err' || stream === 'out' ? stream : 'both',
    match:
      text === ''
        ? null
        : { text, regex: query.get('mode') === 'regex', matchCase: query.get('case') === '1' },
    only: query.get('only') === '1',
    chosen: parseRange(query.get('line')),
    since: query.get('since'),
    until: query.get('until'),
    wraps: wrap === null ? null : wrap === '1',
    time: TIMES[query.get('time') ?? ''] ?? null,
  };
}

/** The parameters of a search. */
export function matchParameters(match: Match | null): Record<'q' | 'mode' | 'case', string | null> {
  return {
    q: match?.text ?? null,
    mode: match?.regex ? 'regex' : null,
    case: match?.matchCase ? '1' : null,
  };
}

export function timeParameter(time: LineTime): string {
  return Object.entries(TIMES).find(([, value]) => value === time)?.[0] ?? 'abs';
}

/** The streams of a choice; none stands for all that were printed. */
export function streamsOf(choice: StreamChoice): StreamName[] {
  if (choice === 'both') return [];
  return [choice === 'out' ? 'stdout' : 'stderr'];
}
