import { describe, expect, test } from 'vitest';
import {
  ATTENTION,
  isFiltered,
  parseListQuery,
  parseText,
  pressHead,
  sortParameter,
  statusParameter,
  tabOf,
  takeQualified,
} from './list-query';

const parse = (query: string) => parseListQuery(new URLSearchParams(query));

describe('the address', () => {
  test('says all', () => {
    expect(parse('status=running,failed&label=ci&label=team:web&q=nextest&sort=-started&project=/p')).toEqual(
      {
        status: ['active', 'failed'],
        labels: ['ci', 'team:web'],
        project: '/p',
        owner: '',
        text: 'nextest',
        sort: { column: 'started', descending: true },
      },
    );
  });

  test('without anything, or with what is unknown, all in the order of attention', () => {
    for (const query of ['', 'status=nothing&sort=-colour&label=']) {
      expect(parse(query)).toMatchObject({ status: [], labels: [], sort: ATTENTION });
      expect(isFiltered(parse(query))).toBe(false);
    }
  });

  test('says a status and an order as they are read', () => {
    expect(statusParameter(['active', 'error'])).toBe('running,error');
    expect(statusParameter(['all'])).toBeNull();
    expect(sortParameter(ATTENTION)).toBeNull();
    expect(sortParameter({ column: 'state', descending: true })).toBe('-state');
    expect(sortParameter({ column: 'command', descending: false })).toBe('command');
    expect(parse('status=running').status.map((tab) => tabOf([tab]))).toEqual(['active']);
    expect(tabOf([])).toBe('all');
    expect(tabOf(['failed', 'error'])).toBeNull();
  });
});

test('a head sorts by its column, the useful end first, and turns around', () => {
  const started = pressHead(ATTENTION, 'started');
  expect(started).toEqual({ column: 'started', descending: true });
  expect(pressHead(started, 'started')).toEqual({ column: 'started', descending: false });
  expect(pressHead(started, 'command')).toEqual({ column: 'command', descending: false });
  expect(pressHead(started, 'state')).toEqual(ATTENTION);
});

test('words and qualified terms', () => {
  expect(parseText(' Cargo label:ci "two words" owner:"the builder" project:/p label: http://a:1 ')).toEqual({
    labels: ['ci'],
    projects: ['/p'],
    owners: ['the builder'],
    words: ['cargo', 'two words', 'label:', 'http://a:1'],
  });
  expect(parseText('"open').words).toEqual(['open']);
});

test('qualified terms become filters', () => {
  const filter = {
    status: [],
    labels: ['ci'],
    project: '',
    owner: '',
    text: 'label:web label:ci "a b" x owner:me',
  };
  expect(takeQualified(filter)).toEqual({
    status: [],
    labels: ['ci', 'web'],
    project: '',
    owner: 'me',
    text: '"a b" x',
  });
  const plain = { ...filter, text: 'only words' };
  expect(takeQualified(plain)).toBe(plain);
});
