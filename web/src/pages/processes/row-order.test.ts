import { expect, test } from 'vitest';
import { ATTENTION } from './list-query';
import { holdRows, insertRows, isStale, NO_ROWS, rowAfterRemoval, sortRows } from './row-order';
import { comparison, type Row } from './rows';
import { byId, ended, NOON, row, uuidOf } from './sample-rows';

const compare = comparison(ATTENTION, () => 0, NOON);
const ids = (...numbers: number[]) => numbers.map(uuidOf);

test('rows keep their place when their state changes, and others come in at theirs', () => {
  const before = sortRows([row(1), row(2), row(3)], compare);
  expect(before.ids).toEqual(ids(3, 2, 1));
  const rows = byId([row(1), row(2, ended('completed', 5)), row(3), row(4), row(0, ended('completed', 1))]);
  const after = insertRows(before, rows, compare);
  // 2 has ended and keeps its place; 4 runs and is the newest; 0 has ended and comes in before 2, the first such.
  expect(after).toEqual({ ids: ids(4, 3, 2, 1, 0), held: 0 });
  expect(isStale(after, rows, compare)).toBe(true);
  expect(isStale(sortRows([...rows.values()], compare), rows, compare)).toBe(false);
});

test('rows that are gone leave, in either way', () => {
  const before = sortRows([row(1), row(2), row(3)], compare);
  const rows = byId([row(1), row(3)]);
  expect(insertRows(before, rows, compare).ids).toEqual(ids(3, 1));
  expect(holdRows(before, rows, rows).ids).toEqual(ids(3, 1));
});

test('while the person is at the list nothing comes in and nothing leaves it that exists', () => {
  const before = sortRows([row(1), row(2)], compare);
  const ending = row(1, ended('completed', 5));
  const all = byId([ending, row(2), row(3), row(4)]);
  const matching = new Map([...all].filter(([, { tab }]) => tab === 'active'));
  expect(holdRows(before, matching, all)).toEqual({ ids: ids(2, 1), held: 2 });
  // Once the person has left, the one that no longer matches goes.
  expect(insertRows(before, matching, compare).ids).toEqual(ids(4, 3, 2));
});

test('an order that does not change stays the same object', () => {
  const rows = byId([row(1), row(2)]);
  const order = sortRows([...rows.values()], compare);
  expect(insertRows(order, rows, compare)).toBe(order);
  expect(holdRows(order, rows, rows)).toBe(order);
  expect(insertRows(NO_ROWS, new Map<string, Row>(), compare)).toBe(NO_ROWS);
});

test('ten thousand rows take one more without delay', () => {
  const many = Array.from({ length: 10_000 }, (_, number) => row(number, ended('completed', number)));
  const order = sortRows(many, compare);
  const rows = byId([...many, row(10_001)]);
  const start = performance.now();
  expect(insertRows(order, rows, compare).ids[0]).toBe(uuidOf(10_001));
  expect(performance.now() - start).toBeLessThan(250);
});

test('the focus goes to the next row that stays', () => {
  expect(rowAfterRemoval(['a', 'b', 'c', 'd'], 'b', ['a', 'd'])).toBe('d');
  expect(rowAfterRemoval(['a', 'b'], 'b', ['a'])).toBe('a');
  expect(rowAfterRemoval(['a'], 'a', [])).toBeNull();
  expect(rowAfterRemoval(['a'], 'z', ['a'])).toBeNull();
});
