import { expect, test } from 'vitest';
import { followRows, neighbour, parseShellMark } from './osc133';

test.each([
  ['A;ostler=abc', { kind: 'prompt', continuation: false }],
  ['A;k=s;ostler=abc', { kind: 'prompt', continuation: true }],
  ['B', { kind: 'input' }],
  ['C;ostler=abc', { kind: 'output' }],
  ['D;130;ostler=abc', { kind: 'end', status: 130 }],
  ['D;;ostler=abc', { kind: 'end', status: null }],
  ['D', { kind: 'end', status: null }],
  ['Z;1', null],
  ['', null],
])('%s', (data, mark) => {
  expect(parseShellMark(data)).toEqual(mark);
});

test('the command before and after', () => {
  const commands = [{ id: 3 }, { id: 5 }, { id: 8 }];
  expect(neighbour(commands, null, 'previous')).toBe(8);
  expect(neighbour(commands, 8, 'previous')).toBe(5);
  expect(neighbour(commands, 3, 'previous')).toBeUndefined();
  expect(neighbour(commands, 5, 'next')).toBe(8);
  expect(neighbour(commands, 8, 'next')).toBeUndefined();
  expect(neighbour(commands, null, 'next')).toBeUndefined();
  expect(neighbour([], null, 'previous')).toBeUndefined();
});

test('rows of a screen that was painted anew', () => {
  const before = ['$ make', 'ok', '$ make', 'ok', '$ ', ''];
  expect(followRows(before, before)).toEqual([0, 1, 2, 3, 4, null]);
  // Two rows less at the top, one more at the end.
  expect(followRows(before, ['$ make', 'ok', '$ ', ''])).toEqual([null, null, 0, 1, 2, null]);
  expect(followRows(['a', 'b'], ['b', 'a'])).toEqual([null, 0]);
  expect(followRows(['a'], [])).toEqual([null]);
});
