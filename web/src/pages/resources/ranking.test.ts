import { expect, it } from 'vitest';
import type { Execution, UsagePoint } from '../../api/types';
import { keptOrder, overlapping, ranked, resourceOf, usageRow } from './ranking';

const START = Date.parse('2026-11-24T12:00:00Z');

function execution(uuid: string, start: number | null, end: number | null = null): Execution {
  const at = (second: number | null) =>
    second === null ? null : new Date(START + second * 1000).toISOString();
  return { uuid, start_time: at(start), end_time: at(end) } as Execution;
}

function row(uuid: string, cpu: number, living = true) {
  const point = (second: number): UsagePoint => ({
    at: new Date(START + second * 1000).toISOString(),
    memory_bytes: 10,
    processes: 1,
    cpu_percent: cpu,
  });
  const track = { points: [point(10), point(20)], resolutionS: 10, living };
  return usageRow({ execution: execution(uuid, 0), track }, [START, START + 20_000], 10_000);
}

it('those that ran in the range are found, living ones first', () => {
  const all = [
    execution('ended', 0, 50),
    execution('before', 0, 5),
    execution('lives', 0),
    execution('never', null),
  ];
  expect(overlapping(all, START + 10_000, 10).map((it) => it.uuid)).toEqual(['lives', 'ended']);
  expect(overlapping(all, START + 10_000, 1)).toHaveLength(1);
});

it('what was used is averaged over the range; what ended uses nothing now', () => {
  expect(row('a', 30).average.cpu).toBe(30);
  expect(row('a', 30).now.cpu).toBe(30);
  expect(row('a', 30, false).now.cpu).toBeNull();
});

it('the order is that of the resource, and stays for those that are shown', () => {
  const order = ranked([row('a', 5), row('b', 50), row('c', 20)], 'cpu');
  expect(order).toEqual(['b', 'c', 'a']);
  expect(keptOrder(['a', 'gone', 'b'], order)).toEqual(['a', 'b', 'c']);
});

it('an unknown resource is the first', () => {
  expect(resourceOf('memory')).toBe('memory');
  expect(resourceOf('nonsense')).toBe('cpu');
});
