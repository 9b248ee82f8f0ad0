import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { coalesced, forEachLimited, whileVisible } from './refresh';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

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

test('again and again while the page is visible, until its end', () => {
  const page = { visibilityState: 'visible' };
  vi.stubGlobal('document', page);
  const action = vi.fn();
  const end = whileVisible(action, 1_000);
  vi.advanceTimersByTime(2_500);
  expect(action).toHaveBeenCalledTimes(2);
  page.visibilityState = 'hidden';
  vi.advanceTimersByTime(5_000);
  expect(action).toHaveBeenCalledTimes(2);
  page.visibilityState = 'visible';
  vi.advanceTimersByTime(1_000);
  end();
  vi.advanceTimersByTime(5_000);
  expect(action).toHaveBeenCalledTimes(3);
});
