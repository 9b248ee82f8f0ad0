import { expect, test } from 'vitest';
import { shortCommand, splitCommand, truncate } from './command';

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

test.each([
  ['/usr/bin/terraform apply -target=x', 20, 'terraform', ' apply -ta…'],
  ['make', 20, 'make', ''],
  ['a-program-with-a-long-name x', 10, 'a-program…', ''],
  ["'/a b/c' d", 20, "'/a b/c'", ' d'],
])('%s in %d characters', (command, limit, program, rest) => {
  expect(shortCommand(command, limit)).toEqual({ program, rest });
});
