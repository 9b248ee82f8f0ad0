/** What the list of processes shows, as its address says; pure. */

/** `active` is what has not ended. */
export type StatusTab = 'all' | 'active' | 'completed' | 'failed' | 'terminated' | 'error';
export type Column =
  | 'state'
  | 'command'
  | 'description'
  | 'labels'
  | 'owner'
  | 'directory'
  | 'started'
  | 'duration'
  | 'use'
  | 'exit';

export interface Sort {
  column: Column;
  descending: boolean;
}

export interface ListFilter {
  /** Empty: all. */
  status: readonly Exclude<StatusTab, 'all'>[];
  labels: readonly string[];
  project: string;
  owner: string;
  /** What was typed: words, and qualified ones such as `label:ci`. */
  text: string;
}

export interface ListQuery extends ListFilter {
  sort: Sort;
}

export const TABS: readonly StatusTab[] = ['all', 'active', 'completed', 'failed', 'terminated', 'error'];

/** The order of attention: questions, new failures, what runs, the rest. */
export const ATTENTION: Sort = { column: 'state', descending: false };

/** Columns by which one sorts, and whether the first press of the head shows the largest first. */
const LARGEST_FIRST: Record<Exclude<Column, 'description' | 'labels' | 'directory'>, boolean> = {
  state: false,
  command: false,
  owner: false,
  started: true,
  duration: true,
  use: true,
  exit: true,
};

/** In the address, `active` has the name that REST has for it. */
const STATUS_NAMES: Record<Exclude<StatusTab, 'all'>, string> = {
  active: 'running',
  completed: 'completed',
  failed: 'failed',
  terminated: 'terminated',
  error: 'error',
};

export function parseListQuery(query: URLSearchParams): ListQuery {
  return {
    status: parseStatus(query.get('status')),
    labels: [...new Set(query.getAll('label').filter(Boolean))],
    project: query.get('project') ?? '',
    owner: query.get('owner') ?? '',
    text: query.get('q') ?? '',
    sort: parseSort(query.get('sort')),
  };
}

function parseStatus(text: string | null): ListFilter['status'] {
  const names = new Set(text?.split(',') ?? []);
  return TABS.filter((tab) => tab !== 'all').filter((tab) => names.has(STATUS_NAMES[tab]) || names.has(tab));
}

/** What the address says of a status; `null` for all. */
export function statusParameter(tabs: readonly StatusTab[]): string | null {
  const names = tabs.filter((tab) => tab !== 'all').map((tab) => STATUS_NAMES[tab]);
  return names.length > 0 ? names.join(',') : null;
}

export function isSortable(column: Column): column is keyof typeof LARGEST_FIRST {
  return column in LARGEST_FIRST;
}

function parseSort(text: string | null): Sort {
  const column = (text ?? '').replace(/^-/, '') as Column;
  if (!isSortable(column)) return ATTENTION;
  return { column, descending: text?.startsWith('-') ?? false };
}

/** What the address says of an order; `null` for that of attention. */
export function sortParameter({ column, descending }: Sort): string | null {
  if (column === 'state' && !descending) return null;
  return (descending ? '-' : '') + column;
}

/** The order after a press of a column's head. */
export function pressHead(sort: Sort, column: keyof typeof LARGEST_FIRST): Sort {
  if (sort.column !== column) return { column, descending: LARGEST_FIRST[column] };
  return { column, descending: !sort.descending };
}

/** The segment that is chosen; `null` where the address names several. */
export function tabOf(status: ListFilter['status']): StatusTab | null {
  if (status.length === 0) return 'all';
  return status.length === 1 ? (status[0] ?? null) : null;
}

export function isFiltered(filter: ListFilter): boolean {
  const { status, labels, project, owner, text } = filter;
  return status.length + labels.length > 0 || `${project}${owner}${text.trim()}` !== '';
}

export interface TextTerms {
  labels: string[];
  projects: string[];
  owners: string[];
  /** Lower case; each must be in the command, the description or the id. */
  words: string[];
}

const QUALIFIERS = { label: 'labels', project: 'projects', owner: 'owners' } as const;

/** The terms of what was typed: words, `"several words"`, and `label:`, `project:`, `owner:` with a value. */
export function parseText(text: string): TextTerms {
  const terms: TextTerms = { labels: [], projects: [], owners: [], words: [] };
  for (const [, qualifier, quoted, plain] of text.matchAll(
    /(label:|project:|owner:)?(?:"([^"]*)"?|(\S+))/gi,
  )) {
    const value = quoted ?? plain ?? '';
    if (value === '') continue;
    const name = qualifier?.slice(0, -1).toLowerCase() as keyof typeof QUALIFIERS | undefined;
    if (name) terms[QUALIFIERS[name]].push(value);
    else terms.words.push(value.toLowerCase());
  }
  return terms;
}

/** Makes the qualified terms of what was typed to filters of their own; the words stay. */
export function takeQualified(filter: ListFilter): ListFilter {
  const { labels, projects, owners, words } = parseText(filter.text);
  if (labels.length + projects.length + owners.length === 0) return filter;
  return {
    ...filter,
    labels: [...new Set([...filter.labels, ...labels])],
    project: projects.at(-1) ?? filter.project,
    owner: owners.at(-1) ?? filter.owner,
    text: words.map((word) => (/\s/.test(word) ? `"${word}"` : word)).join(' '),
  };
}
