import { describe, expect, it } from 'vitest';
import { axisTop, drawnLimits, highest, nearestIndex, type PlotSeries, placedMarks } from './plot';

const series = (...values: (number | null)[]): PlotSeries => ({ label: 'a', values, colour: 'running' });

describe('the value axis', () => {
  it('has room above the highest value', () => {
    expect(highest([series(1, null, 10), series(3)])).toBe(10);
    expect(axisTop([series(1, 10)], [], 0)).toBeCloseTo(11.2);
  });

  it('reaches a limit that is near, and leaves one out that would flatten the curve', () => {
    const near = { value: 30, label: 'near' };
    const far = { value: 300, label: 'far' };
    expect(drawnLimits([near, far], 10)).toEqual([near]);
    expect(axisTop([series(10)], [near, far], 0)).toBeCloseTo(33.6);
  });

  it('is never shorter than asked for, also without values', () => {
    expect(axisTop([series(null)], [], 100)).toBe(100);
    expect(axisTop([], [], 1)).toBe(1);
  });
});

describe('the nearest time', () => {
  it('is found on both sides', () => {
    expect(nearestIndex([0, 10, 20], 4)).toBe(0);
    expect(nearestIndex([0, 10, 20], 6)).toBe(1);
    expect(nearestIndex([0, 10, 20], 99)).toBe(2);
    expect(nearestIndex([0, 10, 20], -5)).toBe(0);
    expect(nearestIndex([], 1)).toBeNull();
  });
});

it('marks outside of the range are left out', () => {
  const mark = (at: number) => ({ at, label: 'm', href: '/' });
  expect(placedMarks([mark(5), mark(15), mark(25)], [10, 20])).toEqual([{ ...mark(15), place: 0.5 }]);
});
