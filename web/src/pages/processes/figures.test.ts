import { expect, test } from 'vitest';
import type { UsagePoint } from '../../api/types';
import { BARS, barHeights, figuresOf, MINUTE_MS, totalUse } from './figures';
import { ended, NOON, row } from './sample-rows';

const NOON_MINUTE = NOON / MINUTE_MS;

test('what started and failed within the hour, by minutes', () => {
  const rows = [
    row(5),
    row(59, ended('failed', 61)),
    row(-60, ended('completed', -30)),
    row(-59 * 60, ended('error', -58 * 60)),
    row(-60 * 60, ended('failed', -60 * 60 + 1)),
  ];
  const { active, failed, started, minutes } = figuresOf(rows, NOON_MINUTE + 1);
  expect([active, failed, started, minutes.length]).toEqual([1, 2, 3, BARS]);
  expect(minutes.slice(-3)).toEqual([
    { started: 1, failed: 0 },
    { started: 2, failed: 0 },
    { started: 0, failed: 1 },
  ]);
});

test('bars fit, and a single failure is seen beside a thousand starts', () => {
  for (const [started, failed] of [
    [0, 0],
    [1, 0],
    [1_000, 1],
    [1_000, 1_000],
    [0, 3],
  ] as const) {
    const heights = barHeights({ started, failed }, 1_000, 30);
    expect(heights.started + heights.failed).toBeLessThanOrEqual(29);
    expect(heights.started).toBeGreaterThanOrEqual(started > 0 ? 3 : 1);
    expect(heights.failed >= 4).toBe(failed > 0);
  }
});

test('use is that of the newest samples', () => {
  const point = (cpu_percent: number, memory_bytes: number) => ({ cpu_percent, memory_bytes }) as UsagePoint;
  const samples = new Map([
    ['a', [point(1, 1), point(742, 1_000)]],
    ['b', [point(58, 24)]],
    ['c', []],
  ]);
  expect(totalUse(samples)).toEqual({ cores: 8, memory: 1_024 });
});
