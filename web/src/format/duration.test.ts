import { expect, test } from 'vitest';
import { formatAge, formatBytes, formatDuration, formatPercent, parseDuration } from './duration';

test.each([
  [84, '84 ms'],
  [999.4, '999 ms'],
  [2_840, '2.8 s'],
  [59_949, '59.9 s'],
  [59_950, '1m 00s'],
  [192_000, '3m 12s'],
  [3_599_600, '1h 00m'],
  [8_460_000, '2h 21m'],
  [356_400_000, '4d 3h'],
  [-1, '–'],
])('%d ms is %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});

test('what goes on is told in whole seconds', () => {
  expect(formatAge(2_999)).toBe('2 s');
  expect(formatAge(61_000)).toBe('1m 01s');
});

test.each([
  [0, '0 B'],
  [999, '999 B'],
  [1_000, '1.0 kB'],
  [9_960, '10 kB'],
  [212_400_000, '212 MB'],
  [1_900_000_000, '1.9 GB'],
  [999_600, '1.0 MB'],
])('%d bytes are %s', (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text);
});

test('percent', () => {
  expect([0, 0.04, 3.2, 9.96, 742.4].map(formatPercent)).toEqual(['0 %', '0.0 %', '3.2 %', '10 %', '742 %']);
});

test.each([
  ['90', 90_000],
  ['1.5', 1_500],
  ['90s', 90_000],
  [' 15 m ', 900_000],
  ['1h 30m', 5_400_000],
  ['1h30m', 5_400_000],
  ['250ms', 250],
  ['', null],
  ['soon', null],
  ['1 week', null],
  ['-5s', null],
])('a person means %j', (text, ms) => {
  expect(parseDuration(text)).toBe(ms);
});
