/**
 * Reads the audit log from its end. REST pages go forwards from an entry; a window before the last one that was read
 * is read to its end, and becomes larger where the caller may see nothing of it.
 */
import type { AuditEntry, DamagedEntries } from '../../api/types';

export interface AuditPage {
  entries: AuditEntry[];
  /** Entries that are left out because they cannot be read. */
  damaged?: DamagedEntries[];
  next: number;
  more: boolean;
}

/** Entries that were read, and those between them that cannot be. */
export interface AuditEntries {
  entries: AuditEntry[];
  damaged: DamagedEntries[];
}

/** A page of entries from the number `from` on. */
export type ReadPage = (from: number, limit: number) => Promise<AuditPage>;

/** The entries are the newest first. */
export interface OlderEntries extends AuditEntries {
  /** The number that all of them are at or after; 0: there are no older ones. */
  start: number;
}

/** Entries of one request. */
const LIMIT = 500;
/** The first window. */
const WINDOW = 200;

/** The number after that of the newest entry. */
export async function auditEnd(read: ReadPage): Promise<number> {
  return (await read(Number.MAX_SAFE_INTEGER, 1)).next;
}

/** At least `wanted` entries before the number `end`, where there are so many. */
export async function readOlder(read: ReadPage, end: number, wanted: number): Promise<OlderEntries> {
  const entries: AuditEntry[] = [];
  let damaged: DamagedEntries[] = [];
  let start = end;
  let size = WINDOW;
  while (start > 0 && entries.length < wanted) {
    const from = Math.max(0, start - size);
    const window = await readWindow(read, from, start);
    entries.push(...window.entries.reverse());
    damaged = joinDamaged(window.damaged, damaged);
    start = from;
    if (window.entries.length === 0) size *= 4;
  }
  return { entries, damaged, start };
}

/** The entries with numbers from `from` to `end`, the oldest first. */
export async function readWindow(read: ReadPage, from: number, end: number): Promise<AuditEntries> {
  const entries: AuditEntry[] = [];
  let damaged: DamagedEntries[] = [];
  let next = from;
  while (next < end) {
    const page = await read(next, LIMIT);
    entries.push(...page.entries.filter(({ seq }) => seq < end));
    damaged = joinDamaged(damaged, page.damaged ?? []);
    if (!page.more || page.next <= next) break;
    next = page.next;
  }
  return { entries, damaged };
}

/** The ranges of both, in their order; the same or adjacent ones as one. */
export function joinDamaged(one: DamagedEntries[], other: DamagedEntries[]): DamagedEntries[] {
  const joined: DamagedEntries[] = [];
  for (const range of [...one, ...other].sort((a, b) => a.first - b.first)) {
    const before = joined.at(-1);
    if (before && range.first <= before.last + 1) {
      joined[joined.length - 1] = { first: before.first, last: Math.max(before.last, range.last) };
    } else {
      joined.push(range);
    }
  }
  return joined;
}
