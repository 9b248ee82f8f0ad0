import { expect, test } from 'vitest';
import type { HistoryEntry } from '../../api/types';
import { runningIds, withNewer } from './history-row';

const entry = (uuid: string, status: string): HistoryEntry =>
  ({ uuid, id: uuid, status, attempts: 1 }) as HistoryEntry;

const entries = [entry('c', 'running'), entry('b', 'succeeded'), entry('a', 'running')];

test('those that are shown as running', () => {
  expect(runningIds(entries)).toEqual(['c', 'a']);
});

test('what has ended takes the place of what ran, and nothing else moves', () => {
  const newer = withNewer(entries, [entry('a', 'failed'), entry('x', 'failed')]);
  expect(newer.map(({ uuid, status }) => [uuid, status])).toEqual([
    ['c', 'running'],
    ['b', 'succeeded'],
    ['a', 'failed'],
  ]);
  expect(withNewer(entries, [])).toEqual(entries);
});
