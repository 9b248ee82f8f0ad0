import { describe, expect, test } from 'vitest';
import { ATTENTION, type ListFilter, type Sort } from './list-query';
import { comparison, countTabs, facets, failureText, isBadExit, matcher, type Row } from './rows';
import { ended, NOON, row } from './sample-rows';

const ALL: ListFilter = { status: [], labels: [], project: '', owner: '', text: '' };
const numbers = (rows: readonly Row[]) => rows.map(({ execution }) => Number(execution.id.slice(1)));
const sorted = (rows: Row[], sort: Sort, use = (_: string) => 0) =>
  numbers([...rows].sort(comparison(sort, use, NOON + 100_000)));

describe('filters', () => {
  const rows = [
    row(1, { command: 'cargo nextest run', labels: ['ci', 'rust'], session: 'builder' }),
    row(2, { command: 'npm run dev', description: 'The Ledger', labels: ['web'], project: '/srv/ledger' }),
    row(3, { command: 'cargo build', labels: ['ci'], ...ended('failed', 5) }),
  ];
  const found = (part: Partial<ListFilter>) => numbers(rows.filter(matcher({ ...ALL, ...part })));

  test.each<[string, Partial<ListFilter>, number[]]>([
    ['nothing', {}, [1, 2, 3]],
    ['a status', { status: ['failed'] }, [3]],
    ['two statuses', { status: ['failed', 'active'] }, [1, 2, 3]],
    ['all of the labels', { labels: ['ci', 'rust'] }, [1]],
    ['a project', { project: '/srv/ledger' }, [2]],
    ['the owner by session', { owner: 'builder' }, [1]],
    ['the owner by principal', { owner: 'uid:0' }, [1, 2, 3]],
    ['a word of the command', { text: 'NEXTEST' }, [1]],
    ['a word of the description', { text: 'ledger' }, [2]],
    ['an id', { text: 'x3' }, [3]],
    ['every word', { text: 'cargo build' }, [3]],
    ['a phrase', { text: '"cargo run"' }, []],
    ['a qualified term', { text: 'label:ci cargo' }, [1, 3]],
  ])('by %s', (_, part, expected) => {
    expect(found(part)).toEqual(expected);
  });

  test('tabs are counted under the other filters', () => {
    expect(countTabs(rows, { ...ALL, status: ['failed'], labels: ['ci'] })).toEqual({
      all: 2,
      active: 1,
      completed: 0,
      failed: 1,
      terminated: 0,
      error: 0,
    });
  });

  test('values that can be filtered by, the most frequent first', () => {
    expect(facets(rows)).toEqual({
      labels: [
        ['ci', 2],
        ['rust', 1],
        ['web', 1],
      ],
      owners: [
        ['uid:0', 2],
        ['builder', 1],
      ],
      projects: [['/srv/ledger', 1]],
    });
  });
});

describe('orders', () => {
  const rows = [
    row(1, ended('completed', 90)),
    row(2),
    row(3, ended('failed', -50)),
    row(4, {}, true),
    row(5, ended('failed', 50)),
    row(6),
  ];

  test('attention: questions, new failures, what runs, the rest; the newest first', () => {
    expect(sorted(rows, ATTENTION)).toEqual([4, 5, 6, 2, 3, 1]);
    expect(sorted(rows, { ...ATTENTION, descending: true })).toEqual([3, 1, 6, 2, 5, 4]);
  });

  test('columns', () => {
    expect(sorted(rows, { column: 'started', descending: true })).toEqual([6, 5, 4, 3, 2, 1]);
    expect(sorted(rows, { column: 'started', descending: false })).toEqual([1, 2, 3, 4, 5, 6]);
    expect(sorted(rows, { column: 'command', descending: false })).toEqual([1, 2, 3, 4, 5, 6]);
    expect(sorted(rows, { column: 'duration', descending: true }).slice(0, 2)).toEqual([2, 4]);
    expect(sorted(rows, { column: 'exit', descending: true }).slice(0, 3)).toEqual([5, 3, 1]);
    const use = (uuid: string) => (uuid.endsWith('2') ? 742 : 0);
    expect(sorted(rows, { column: 'use', descending: true }, use)[0]).toBe(2);
  });
});

test('an exit is bad news unless it was asked for', () => {
  expect(isBadExit(row(1, ended('completed', 1)))).toBe(false);
  expect(isBadExit(row(1, ended('failed', 1)))).toBe(true);
  const signal = { ...ended('terminated', 1), exit_code: null, signal: 'SIGKILL' };
  expect(isBadExit(row(1, { ...signal, cause: { kind: 'stopped' } }))).toBe(false);
  expect(isBadExit(row(1, { ...signal, cause: { kind: 'timed_out', clock: 'wall' } }))).toBe(true);
});

test('why it failed is told where the exit code does not', () => {
  const error_message = 'permission denied';
  const cause = { kind: 'spawn_failed' as const, message: error_message, step: 'exec' };
  expect(failureText(row(1, { ...ended('error', 1), cause, error_message }))).toBe('permission denied');
  expect(failureText(row(1, { ...ended('failed', 1), error_message: 'exit code 1' }))).toBeNull();
  expect(failureText(row(1))).toBeNull();
});
