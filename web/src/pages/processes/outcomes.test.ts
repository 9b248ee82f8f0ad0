import { expect, test } from 'vitest';
import { cleanOutcomes, isNoted, summarize } from './outcomes';

test('what became of each, counted with what was done first', () => {
  const outcomes = cleanOutcomes({
    success: [{ pid: 'a' }, { pid: 'b' }],
    running: [{ pid: 'c' }],
    not_found: [],
    failed: [{ pid: 'd', reason: 'disk full' }],
  });
  expect(outcomes.map(({ uuid, kind }) => [uuid, kind])).toEqual([
    ['a', 'cleaned'],
    ['b', 'cleaned'],
    ['c', 'running'],
    ['d', 'failed'],
  ]);
  expect(summarize([...outcomes].reverse())).toEqual([
    ['cleaned', 2],
    ['running', 1],
    ['failed', 1],
  ]);
  expect(outcomes.filter(isNoted).map(({ uuid }) => uuid)).toEqual(['c', 'd']);
  expect(summarize([])).toEqual([]);
});
