/** What the history shows, as its address says, and the request for it; pure. */
import type { paths } from '../../api/schema';

export const STATUSES = ['running', 'succeeded', 'failed', 'timed_out', 'stopped', 'lost'] as const;
export type HistoryStatus = (typeof STATUSES)[number];

export interface HistoryFilter {
  status: HistoryStatus | '';
  text: string;
  label: string;
  project: string;
  session: string;
  /** Days, as `2026-11-24`; both included. */
  from: string;
  to: string;
}

export interface HistoryView extends HistoryFilter {
  /** The position that the page is before; `null`: the newest. */
  before: number | null;
  /** The entry of which all is shown. */
  id: string;
}

type Query = NonNullable<paths['/api/v1/history']['get']['parameters']['query']>;

/** Rows of a page. */
export const PAGE = 100;

export function parseHistoryView(query: URLSearchParams): HistoryView {
  const status = STATUSES.find((one) => one === query.get('status')) ?? '';
  const before = query.get('before');
  return {
    status,
    text: query.get('q') ?? '',
    label: query.get('label') ?? '',
    project: query.get('project') ?? '',
    session: query.get('session') ?? '',
    from: dayParameter(query.get('from')),
    to: dayParameter(query.get('to')),
    before: before !== null && /^\d{1,15}$/.test(before) ? Number(before) : null,
    id: query.get('id') ?? '',
  };
}

function dayParameter(text: string | null): string {
  return text !== null && /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text)) ? text : '';
}

/** Whether anything is left out. */
export function isFilteredHistory({
  status,
  text,
  label,
  project,
  session,
  from,
  to,
}: HistoryFilter): boolean {
  return [status, text.trim(), label, project, session, from, to].some(Boolean);
}

/** The request for a page. Days are those of UTC, or of this machine. */
export function historyRequest(view: HistoryView, utc: boolean): Query {
  const { status, text, label, project, session, from, to, before } = view;
  const since = from ? startOfDay(from, 0, utc) : null;
  const until = to ? startOfDay(to, 1, utc) : null;
  return {
    limit: PAGE,
    ...(status ? { status } : {}),
    ...(text.trim() ? { text: text.trim() } : {}),
    ...(label ? { label } : {}),
    ...(project ? { project } : {}),
    ...(session ? { session } : {}),
    ...(since === null ? {} : { since }),
    ...(until === null ? {} : { until }),
    ...(before === null ? {} : { before }),
  };
}

/** So many days later; `null` outside the years that have four digits: nothing has run then. */
function startOfDay(day: string, later: number, utc: boolean): string | null {
  const date = new Date(utc ? `${day}T00:00:00Z` : `${day}T00:00:00`);
  if (utc) date.setUTCDate(date.getUTCDate() + later);
  else date.setDate(date.getDate() + later);
  const time = date.toISOString();
  return /^\d{4}-/.test(time) ? time : null;
}
