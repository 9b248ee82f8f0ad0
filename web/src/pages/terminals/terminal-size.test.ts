import { expect, test } from 'vitest';
import { LEASE_MS, leaseAge } from './lease';
import { cellsThatFit, fontThatFits } from './terminal-size';

const CELL = { width: 8, height: 16 };

test('the cells of a box', () => {
  expect(cellsThatFit({ width: 807, height: 400 }, CELL)).toEqual({ cols: 100, rows: 25 });
  expect(cellsThatFit({ width: 0, height: 0 }, CELL)).toEqual({ cols: 2, rows: 1 });
  expect(cellsThatFit({ width: 99_999, height: 99_999 }, CELL)).toEqual({ cols: 1_000, rows: 1_000 });
  expect(cellsThatFit({ width: 800, height: 400 }, { width: 0, height: 0 })).toEqual({ cols: 2, rows: 1 });
});

test('letters are made smaller until all is visible, and never larger', () => {
  const size = { cols: 100, rows: 25 };
  expect(fontThatFits(size, { width: 800, height: 400 }, CELL, 13)).toBe(13);
  expect(fontThatFits(size, { width: 2_000, height: 2_000 }, CELL, 13)).toBe(13);
  expect(fontThatFits(size, { width: 600, height: 400 }, CELL, 13)).toBe(9.5);
  expect(fontThatFits(size, { width: 100, height: 400 }, CELL, 13)).toBe(6);
  expect(fontThatFits(size, { width: 800, height: 400 }, { width: 0, height: 0 }, 13)).toBe(13);
});

test('the lease without a key', () => {
  expect(leaseAge(0, 1_000)).toEqual({ kind: 'held', leftMs: 299_000 });
  expect(leaseAge(0, LEASE_MS - 30_000)).toEqual({ kind: 'ends_soon', leftMs: 30_000 });
  expect(leaseAge(0, LEASE_MS)).toEqual({ kind: 'over' });
});
