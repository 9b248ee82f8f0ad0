import { expect, test } from 'vitest';
import { splitCommand, truncate } from './command';

test.each([
  ['cargo nextest run', 'cargo', ' nextest run'],
  ['  make', 'make', ''],
  ["'/a b/c' -x 'y'", "'/a b/c'", " -x 'y'"],
  ['"a\\"b" c', '"a\\"b"', ' c'],
  ['', '', ''],
  ['echo a\necho b', 'echo', ' a\necho b'],
  ["'unclosed", "'unclosed", ''],
])('%j', (command, program, rest) => {
  expect(splitCommand(command)).toEqual({ program, rest });
});

test('a cut text has the limit, in characters', () => {
  expect(truncate('abc', 3)).toBe('abc');
  expect(truncate('abcd', 3)).toBe('ab…');
  expect(truncate('🦀🦀🦀', 2)).toBe('🦀…');
});
