import { expect, it } from 'vitest';
import { failureShare } from './usual-text';

it('tells how often a command fails', () => {
  expect(failureShare(0, 20)).toBeNull();
  expect(failureShare(1, 20)).toEqual([1, 20]);
  expect(failureShare(2, 41)).toEqual([2, 41]);
  expect(failureShare(5, 40)).toEqual([1, 8]);
  expect(failureShare(20, 20)).toEqual([20, 20]);
});
