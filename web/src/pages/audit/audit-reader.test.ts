import { expect, test } from 'vitest';
import type { AuditEntry } from '../../api/types';
import { type AuditPage, auditEnd, joinDamaged, type ReadPage, readOlder, readWindow } from './audit-reader';

/** A log of which the caller sees some entries, and whose oldest ones are gone. */
function log(count: number, sees: (seq: number) => boolean, first = 0) {
  let requests = 0;
  const read = async (from: number, limit: number): Promise<AuditPage> => {
    requests += 1;
    const entries: AuditEntry[] = [];
    let next = Math.min(Math.max(from, first), count);
    for (; next < count && entries.length < limit; next += 1) {
      if (sees(next)) entries.push({ seq: next } as AuditEntry);
    }
    return { entries, next, more: next < count };
  };
  return { read, requests: () => requests };
}

const numbers = (entries: AuditEntry[]) => entries.map(({ seq }) => seq);

test('from the end, newest first, to the beginning', async () => {
  const { read } = log(1_000, () => true);
  expect(await auditEnd(read)).toBe(1_000);
  const newest = await readOlder(read, 1_000, 100);
  expect(newest.entries.length).toBe(200);
  expect(numbers(newest.entries).slice(0, 3)).toEqual([999, 998, 997]);
  expect(newest.start).toBe(800);
  const rest = await readOlder(read, newest.start, 10_000);
  expect(rest.entries.length).toBe(800);
  expect(rest.start).toBe(0);
  expect(numbers(rest.entries).at(-1)).toBe(0);
});

test('entries of others are passed over in a few requests', async () => {
  const { read, requests } = log(100_000, (seq) => seq < 10);
  const { entries, start } = await readOlder(read, 100_000, 5);
  expect(numbers(entries)).toEqual([9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
  expect(start).toBe(0);
  expect(requests()).toBeLessThan(20);
});

test('a log whose oldest entries are gone ends there', async () => {
  const { read } = log(1_000, () => true, 900);
  const { entries, start } = await readOlder(read, 1_000, 500);
  expect(numbers(entries).at(-1)).toBe(900);
  expect(entries.length).toBe(100);
  expect(start).toBe(0);
});

test('an empty log', async () => {
  const { read } = log(0, () => true);
  expect(await readOlder(read, await auditEnd(read), 10)).toEqual({ entries: [], damaged: [], start: 0 });
  expect(await readWindow(read, 0, 0)).toEqual({ entries: [], damaged: [] });
});

test('entries that cannot be read are told once, in order', async () => {
  const { read } = log(1_000, (seq) => seq % 100 > 2);
  const holes: ReadPage = async (from, limit) => {
    const page = await read(from, limit);
    const damaged = [];
    for (let first = 0; first < page.next; first += 100) {
      if (first >= from) damaged.push({ first, last: first + 2 });
    }
    return { ...page, damaged };
  };
  const { damaged } = await readOlder(holes, 1_000, 5_000);
  expect(damaged.length).toBe(10);
  expect(damaged[1]).toEqual({ first: 100, last: 102 });
});

test('ranges that touch are one', () => {
  const joined = joinDamaged(
    [{ first: 5, last: 6 }],
    [
      { first: 1, last: 2 },
      { first: 3, last: 5 },
      { first: 9, last: 9 },
    ],
  );
  expect(joined).toEqual([
    { first: 1, last: 6 },
    { first: 9, last: 9 },
  ]);
});
