import { describe, expect, test } from 'vitest';
import { drawnIndices, drawnRows, scrollToRow, visibleRows } from './row-window';

const VIEW = { height: 480, rowHeight: 48, count: 10_000, overscan: 4 };

describe('the rows that are drawn', () => {
  test.each([
    ['at the top', 0, 0, 14],
    ['below the head of the page', -200, 0, 10],
    ['in the middle', 240_000, 4_996, 5_014],
    ['between two rows', 240_010, 4_996, 5_015],
    ['at the end', 480_000 - 480, 9_986, 10_000],
    ['beyond the end', 500_000, 10_000, 10_000],
    ['above the view as a whole', -5_000, 0, 0],
  ])('%s', (_, top, first, end) => {
    expect(drawnRows({ ...VIEW, top })).toEqual({ first, end });
  });

  test('none of an empty list, and never more than a view and its edges', () => {
    expect(drawnRows({ ...VIEW, top: 0, count: 0 })).toEqual({ first: 0, end: 0 });
    for (let top = 0; top < 480_000; top += 997) {
      const { first, end } = drawnRows({ ...VIEW, top });
      expect(end - first).toBeLessThanOrEqual(10 + 1 + 2 * VIEW.overscan);
      // Every pixel of the view is covered.
      expect(first * 48).toBeLessThanOrEqual(top);
      expect(end * 48).toBeGreaterThanOrEqual(Math.min(top + 480, 480_000));
    }
  });
});

test('the rows that are visible are those with at least half of their height', () => {
  expect(visibleRows({ ...VIEW, top: 0 })).toEqual({ first: 0, end: 10 });
  expect(visibleRows({ ...VIEW, top: 30 })).toEqual({ first: 1, end: 11 });
  expect(visibleRows({ ...VIEW, top: -120 })).toEqual({ first: 0, end: 8 });
  expect(visibleRows({ ...VIEW, top: -900 })).toEqual({ first: 0, end: 0 });
  expect(visibleRows({ ...VIEW, top: 0, count: 3 })).toEqual({ first: 0, end: 3 });
});

test('a row that is kept is drawn although it is far away', () => {
  expect(drawnIndices({ first: 5, end: 8 }, -1)).toEqual([5, 6, 7]);
  expect(drawnIndices({ first: 5, end: 8 }, 6)).toEqual([5, 6, 7]);
  expect(drawnIndices({ first: 5, end: 8 }, 1)).toEqual([1, 5, 6, 7]);
  expect(drawnIndices({ first: 5, end: 8 }, 900)).toEqual([5, 6, 7, 900]);
});

test('scrolling to a row moves as little as it can', () => {
  const view = { top: 4_800, height: 480, rowHeight: 48 };
  expect(scrollToRow(100, view)).toBe(0);
  expect(scrollToRow(109, view)).toBe(0);
  expect(scrollToRow(99, view)).toBe(-48);
  expect(scrollToRow(110, view)).toBe(48);
  expect(scrollToRow(0, view)).toBe(-4_800);
  // A view that is lower than a row shows its beginning.
  expect(scrollToRow(100, { top: 4_800, height: 20, rowHeight: 48 })).toBe(0);
});
