import { describe, expect, it } from 'vitest';
import type { UsagePoint } from '../api/types';
import { mergePoints, pointsSince, sampledSeries, seriesOf, totalSeries } from './usage';

const START = Date.parse('2026-11-24T12:00:00Z');

function point(second: number, fields: Partial<UsagePoint> = {}): UsagePoint {
  return { at: new Date(START + second * 1000).toISOString(), memory_bytes: 100, processes: 1, ...fields };
}

describe('points', () => {
  it('of an interval that goes on take the place of the earlier one', () => {
    const merged = mergePoints([point(9), point(13)], [point(17), point(23)], 10);
    expect(merged.map((it) => it.at)).toEqual([point(9), point(17), point(23)].map((it) => it.at));
  });

  it('that are known already change nothing', () => {
    expect(mergePoints([point(9), point(13)], [point(9)], 10)).toHaveLength(2);
  });

  it('that are too old go', () => {
    expect(pointsSince([point(0), point(10)], START + 5_000)).toHaveLength(1);
  });
});

describe('the series of an execution', () => {
  it('have bytes per second of counters', () => {
    const points = [
      point(0, { read_bytes: 100, written_bytes: 0 }),
      point(10, { read_bytes: 600, written_bytes: 500, cpu_percent: 12 }),
    ];
    const series = seriesOf({ points, resolutionS: 10, living: true });
    expect(series.values.disk).toEqual([null, 100]);
    expect(series.values.cpu).toEqual([null, 12]);
    expect(series.values.network).toEqual([null, null]);
  });

  it('have no rate where a counter began anew', () => {
    const points = [point(0, { read_bytes: 900 }), point(10, { read_bytes: 5 })];
    expect(seriesOf({ points, resolutionS: 10, living: true }).values.disk).toEqual([null, null]);
  });

  it('have a gap where nothing was sampled', () => {
    const series = seriesOf({ points: [point(0), point(300)], resolutionS: 10, living: true });
    expect(series.values.memory).toEqual([100, null, 100]);
  });
});

it('an execution has no values where it did not run', () => {
  const points = [point(30, { cpu_percent: 5 })];
  const track = { points, resolutionS: 10, living: false };
  const series = sampledSeries(track, [START, START + 40_000], 20_000);
  expect(series.values.cpu).toEqual([null, 5, null]);
});

describe('the total', () => {
  const track = (living: boolean, ...points: UsagePoint[]) => ({ points, resolutionS: 10, living });
  const range = [START, START + 40_000] as const;

  it('is the sum of what ran at a time', () => {
    const a = track(true, point(10, { cpu_percent: 50 }), point(20, { cpu_percent: 70 }));
    const b = track(false, point(20, { cpu_percent: 5, memory_bytes: 50 }));
    const series = totalSeries([a, b], range, 10_000, 0);
    expect(series.times).toHaveLength(5);
    expect(series.values.cpu).toEqual([50, 55, 75, 70, 70]);
    expect(series.values.memory).toEqual([100, 150, 150, 100, 100]);
  });

  it('is unknown before the daemon knew anything, and where nothing is measured', () => {
    const series = totalSeries([track(true, point(20))], range, 10_000, START + 15_000);
    expect(series.values.memory.slice(0, 3)).toEqual([null, null, 100]);
    expect(series.values.network[2]).toBeNull();
    expect(series.values.network[4]).toBeNull();
    expect(totalSeries([], range, 10_000, 0).values.network[4]).toBe(0);
  });
});
