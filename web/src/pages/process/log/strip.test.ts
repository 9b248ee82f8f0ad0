import { describe, expect, it } from 'vitest';
import type { OutputShape } from '../../../api/types';
import { lineShare, stripBars, stripView, timeAt } from './strip';

const START = Date.parse('2026-11-24T12:00:00Z');
const shape: OutputShape = {
  first_line: 11,
  ended_lines: 199,
  bytes: 1_000,
  from: '2026-11-24T12:00:00Z',
  to: '2026-11-24T12:00:04Z',
  failures_from_line: 1,
  buckets: [
    { lines: 100, stderr_lines: 0, failure_lines: 0 },
    { lines: 0, stderr_lines: 0, failure_lines: 0 },
    { lines: 25, stderr_lines: 25, failure_lines: 0 },
    { lines: 64, stderr_lines: 5, failure_lines: 0 },
  ],
};

describe('the strip', () => {
  it('has a bar for each slice, and errors where they are', () => {
    const bars = stripBars(shape, [{ line: 5, at: START + 2_500, stream: 'stderr' }]);
    expect(bars.map((bar) => bar.height)).toEqual([1, 0, 0.5, 0.8]);
    expect(bars.map((bar) => bar.errors)).toEqual([0, 0, 1, 0]);
    expect(bars[2]?.from).toBe(START + 2_000);
  });

  it('knows about when a line was printed', () => {
    expect(lineShare(shape, 11)).toBe(0);
    expect(lineShare(shape, 61)).toBe(0.125);
    expect(lineShare(shape, 111)).toBe(0.5);
    expect(lineShare(shape, 9_999)).toBe(1);
    expect(timeAt(shape, 0.5)).toBe(START + 2_000);
  });

  it('shows what is in view', () => {
    const position = {
      top: null,
      bottom: null,
      topPosition: 11,
      bottomPosition: 61,
      isAtEnd: false,
      isJumping: false,
    };
    expect(stripView(shape, position)).toEqual({ from: 0, to: 0.125 });
    expect(stripView(shape, null)).toBeNull();
  });

  it('is empty without output', () => {
    const { from: _from, to: _to, ...rest } = shape;
    expect(stripBars({ ...rest, buckets: [] }, [])).toEqual([]);
  });
});
