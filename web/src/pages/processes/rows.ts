/** Executions as rows of the list: what is filtered, counted and sorted; pure. */
import type { Execution } from '../../api/types';
import { attentionRank, type DisplayState, displayState, toneOf } from '../../model/display-state';
import { type Column, type ListFilter, parseText, type Sort, type StatusTab } from './list-query';

export interface Row {
  uuid: string;
  execution: Execution;
  state: DisplayState;
  tab: Exclude<StatusTab, 'all'>;
  owner: string;
  /** When it was started, or asked for; milliseconds. */
  startedAt: number;
  /** `null` while it has not ended. */
  endedAt: number | null;
  /** Its place in the order of attention. */
  rank: number;
}

/** What does not change while an execution object is the same. */
interface Facts {
  startedAt: number;
  endedAt: number | null;
  searched: string;
  /** The row that was made last: the same object as long as nothing of it changes. */
  row: Row | null;
}

const facts = new WeakMap<Execution, Facts>();

function factsOf(execution: Execution): Facts {
  let found = facts.get(execution);
  if (!found) {
    const { start_time, created_at, end_time, command, description, id, uuid, service } = execution;
    found = {
      startedAt: Date.parse(start_time ?? created_at ?? '') || 0,
      endedAt: end_time ? Date.parse(end_time) : null,
      searched: [command, description, id, uuid, service?.name ?? ''].join('\n').toLowerCase(),
      row: null,
    };
    facts.set(execution, found);
  }
  return found;
}

/** Whose it is: the session, where it belongs to one, else who started it. */
export function ownerOf(execution: Execution): string {
  return execution.session ?? execution.principal;
}

/** The row of an execution. A failure after `lookedAt` is new. */
export function rowOf(execution: Execution, waiting: boolean, lookedAt: number): Row {
  const known = factsOf(execution);
  const { startedAt, endedAt } = known;
  const state = displayState(execution, waiting);
  const rank = attentionRank(state, endedAt !== null && endedAt > lookedAt);
  if (known.row?.state === state && known.row.rank === rank) return known.row;
  const tab = execution.status === 'running' ? 'active' : execution.status;
  known.row = {
    uuid: execution.uuid,
    execution,
    state,
    tab,
    owner: ownerOf(execution),
    startedAt,
    endedAt,
    rank,
  };
  return known.row;
}

/** The filter as a function. Labels: all of them; words: each. */
export function matcher(filter: ListFilter): (row: Row) => boolean {
  const terms = parseText(filter.text);
  const labels = [...filter.labels, ...terms.labels];
  const projects = [filter.project, ...terms.projects].filter(Boolean);
  const owners = [filter.owner, ...terms.owners].filter(Boolean);
  return ({ execution, tab, owner }) =>
    (filter.status.length === 0 || filter.status.includes(tab)) &&
    labels.every((label) => execution.labels.includes(label)) &&
    projects.every((project) => project === execution.project) &&
    owners.every((name) => name === owner || name === execution.principal) &&
    terms.words.every((word) => factsOf(execution).searched.includes(word));
}

/** How many rows each tab has under the other filters. */
export function countTabs(rows: readonly Row[], filter: ListFilter): Record<StatusTab, number> {
  const counts = { all: 0, active: 0, completed: 0, failed: 0, terminated: 0, error: 0 };
  const matches = matcher({ ...filter, status: [] });
  for (const row of rows) {
    if (!matches(row)) continue;
    counts.all += 1;
    counts[row.tab] += 1;
  }
  return counts;
}

export type Compare = (a: Row, b: Row) => number;

/** The comparison of an order; equal ones have the newest first. `use`: percent of a processor, by full id. */
export function comparison(sort: Sort, use: (uuid: string) => number, now: number): Compare {
  const values: Partial<Record<Column, Compare>> = {
    state: (a, b) => a.rank - b.rank,
    command: (a, b) => compareText(a.execution.command, b.execution.command),
    owner: (a, b) => compareText(a.owner, b.owner),
    started: (a, b) => a.startedAt - b.startedAt,
    duration: (a, b) => durationOf(a, now) - durationOf(b, now),
    use: (a, b) => use(a.uuid) - use(b.uuid),
    exit: (a, b) => exitRank(a) - exitRank(b),
  };
  const compare = values[sort.column] ?? (() => 0);
  const sign = sort.descending ? -1 : 1;
  return (a, b) => sign * compare(a, b) || (a.uuid < b.uuid ? 1 : -1);
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

function durationOf({ startedAt, endedAt }: Row, now: number): number {
  return (endedAt ?? now) - startedAt;
}

/** What runs first, then by code, then by signal. */
function exitRank({ execution }: Row): number {
  if (execution.phase !== 'finished') return -1;
  return execution.signal ? 1_000 : (execution.exit_code ?? 999);
}

/** Whether what the exit column says is bad news: not for an end that somebody asked for. */
export function isBadExit({ execution, state }: Row): boolean {
  if (state === 'terminated' || state === 'completed') return false;
  return execution.signal !== null || (execution.exit_code ?? 0) !== 0;
}

/** Why it failed, where the exit code does not tell. */
export function failureText({ execution, state }: Row): string | null {
  if (toneOf(state) !== 'failed' || state === 'failed') return null;
  return execution.error_message;
}

/** The values that filters can have, each with how often, the most frequent first. */
export function facets(rows: readonly Row[]): Record<'labels' | 'owners' | 'projects', [string, number][]> {
  const labels = new Map<string, number>();
  const owners = new Map<string, number>();
  const projects = new Map<string, number>();
  const count = (map: Map<string, number>, value: string) => map.set(value, (map.get(value) ?? 0) + 1);
  for (const { execution, owner } of rows) {
    for (const label of execution.labels) count(labels, label);
    count(owners, owner);
    if (execution.project) count(projects, execution.project);
  }
  const ordered = (map: Map<string, number>) => [...map].sort(([a, m], [b, n]) => n - m || compareText(a, b));
  return { labels: ordered(labels), owners: ordered(owners), projects: ordered(projects) };
}
