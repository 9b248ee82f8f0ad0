/**
 * Reads the audit log from its end. REST pages go forwards from an entry; a window before the last one that was read
 * is read to its end, and becomes larger where the caller may see nothing of it.
 */
import type { AuditEntry } from '../../api/types';

export interface AuditPage {
  entries: AuditEntry[];
  next: number;
  more: boolean;
}

/** A page of entries from the number `from` on. */
export type ReadPage = (from: number, limit: number) => Promise<AuditPage>;

export interface OlderEntries {
  /** Newest first. */
  entries: AuditEntry[];
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
  const found: AuditEntry[] = [];
  let start = end;
  let size = WINDOW;
  while (start > 0 && found.length < wanted) {
    const from = Math.max(0, start - size);
    const window = await readWindow(read, from, start);
    found.push(...window.reverse());
    start = from;
    if (window.length === 0) size *= 4;
  }
  return { entries: found, start };
}

/** The entries with numbers from `from` to `end`, the oldest first. */
export async function readWindow(read: ReadPage, from: number, end: number): Promise<AuditEntry[]> {
  const found: AuditEntry[] = [];
  let next = from;
  while (next < end) {
    const page = await read(next, LIMIT);
    found.push(...page.entries.filter(({ seq }) => seq < end));
    if (!page.more || page.next <= next) break;
    next = page.next;
  }
  return found;
}
