import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { coalesced, forEachLimited } from './refresh';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('requests become one call, and one more for those during it', async () => {
  let calls = 0;
  let finish = () => {};
  const request = coalesced(() => {
    calls += 1;
    return new Promise<void>((resolve) => {
      finish = resolve;
    });
  }, 100);
  request();
  request();
  await vi.advanceTimersByTimeAsync(100);
  expect(calls).toBe(1);
  request();
  request();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(calls).toBe(1);
  finish();
  await vi.advanceTimersByTimeAsync(100);
  expect(calls).toBe(2);
});

test('no more than the limit at a time, and every item', async () => {
  let active = 0;
  let most = 0;
  const done: number[] = [];
  await forEachLimited([1, 2, 3, 4, 5], 2, async (item) => {
    active += 1;
    most = Math.max(most, active);
    await Promise.resolve();
    active -= 1;
    done.push(item);
  });
  expect(most).toBe(2);
  expect(done.toSorted()).toEqual([1, 2, 3, 4, 5]);
});
