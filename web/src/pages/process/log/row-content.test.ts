import { expect, it } from 'vitest';
import { elapsed } from './row-content';

it('writes the time since the start', () => {
  expect(elapsed(84)).toBe('0.084');
  expect(elapsed(12_345.9)).toBe('12.345');
  expect(elapsed(192_007)).toBe('3:12.007');
  expect(elapsed(8_469_345)).toBe('2:21:09.345');
});
