import { expect, it } from 'vitest';
import { plainText } from './plain-text';

it('control sequences are left out', () => {
  expect(plainText('\u001b[31mred\u001b[0m and \u001b]8;;javascript:x\u0007link\u001b]8;;\u0007')).toBe(
    'red and link',
  );
});

it('of a line that was redrawn the last state stays', () => {
  expect(plainText('10 %\r50 %\r100 %\r')).toBe('100 %');
});

it('a very long line is cut', () => {
  expect(plainText('x'.repeat(1_000))).toHaveLength(401);
});
