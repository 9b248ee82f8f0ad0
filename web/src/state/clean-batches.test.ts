import { expect, test } from 'vitest';
import type { CleanOutcome } from '../api/types';
import { CLEAN_BATCH, cleanInBatches } from './clean-batches';

const ids = Array.from({ length: CLEAN_BATCH + 5 }, (_, n) => String(n));
const cleaned = (pids: string[]): CleanOutcome => ({
  success: pids.map((pid) => ({ pid })),
  failed: [],
  running: [],
  not_found: [],
});

test('all are removed, by as many requests as that takes', async () => {
  const sizes: number[] = [];
  const outcome = await cleanInBatches(ids, async (pids) => {
    sizes.push(pids.length);
    return cleaned(pids);
  });
  expect(sizes).toEqual([CLEAN_BATCH, 5]);
  expect(outcome.success.map(({ pid }) => pid)).toEqual(ids);
});

test('where a request fails, what was removed before it counts', async () => {
  let requests = 0;
  const outcome = await cleanInBatches([...ids, ...ids], async (pids) => {
    requests += 1;
    if (requests === 2) throw new Error('the connection broke');
    return cleaned(pids);
  });
  expect(requests).toBe(2);
  expect(outcome.success).toHaveLength(CLEAN_BATCH);
  expect(outcome.failed).toHaveLength(CLEAN_BATCH + 10);
  expect(outcome.failed[0]).toEqual({ pid: String(CLEAN_BATCH), reason: 'the connection broke' });
});

test('where the first request fails, its error is that of the action', async () => {
  const failed = cleanInBatches(ids, () => Promise.reject(new Error('nobody answers')));
  await expect(failed).rejects.toThrow('nobody answers');
});
