import { describe, expect, it } from 'vitest';
import type { LogLine } from './line';
import type { Row } from './log-source';
import { type MarkTexts, type RowSource, rowsAround, type Spec } from './row-specs';

const line = (number: number, more: Partial<LogLine> = {}): LogLine => ({
  number,
  at: 0,
  stream: 'stdout',
  text: String(number),
  offset: number * 10,
  terminated: true,
  clippedBytes: 0,
  skippedBytes: 0,
  binary: false,
  ...more,
});

/** Lines of these numbers; `unknown` ones are not read. */
function source(lines: LogLine[], options: Partial<RowSource> = {}, unknown: number[] = []): RowSource {
  const rowAt = (position: number): Row | null => {
    if (unknown.includes(position)) return { kind: 'unknown', position };
    const found = lines.find((one) => one.number === position);
    return found ? { kind: 'line', position, line: found } : null;
  };
  const first = options.first ?? 1;
  const last = options.last ?? Math.max(0, ...lines.map((one) => one.number), ...unknown);
  const search = (from: number, step: number) => {
    for (let at = from; at >= first && at <= last; at += step) {
      const row = rowAt(at);
      if (row) return row;
    }
    return null;
  };
  return {
    isDense: true,
    isBoundedAtEnd: false,
    isCutAtStart: false,
    ...options,
    first,
    last,
    atOrAfter: (position) => search(Math.max(first, position), 1),
    atOrBefore: (position) => search(Math.min(last, position), -1),
  };
}

const texts: MarkTexts = {
  hasCursor: true,
  marksBefore: () => [],
  marksAfter: () => [],
  lostText: (lost, before, after) => `${lost.bytes} ${before}-${after}`,
};

const shown = (specs: Spec[]) =>
  specs.map((spec) => (spec.kind === 'mark' ? `[${spec.mark.text}]` : spec.key)).join(' ');

describe('rowsAround', () => {
  it('has rows on both sides, and the cursor after the last one', () => {
    const found = rowsAround(source([1, 2, 3, 4, 5].map((number) => line(number))), texts, 3, 1, 9);
    expect(shown(found.specs)).toBe('l2 l3 l4 l5 cursor');
    expect(found).toMatchObject({ anchorKey: 'l3', hasStart: false, hasEnd: true });
  });

  it('skips numbers without a line', () => {
    const found = rowsAround(source([line(1), line(7), line(9)]), texts, 5, 2, 1);
    expect(shown(found.specs)).toBe('l1 l7');
    expect(found).toMatchObject({ anchorKey: 'l7', hasStart: true, hasEnd: false });
  });

  it('keeps places for lines that are not read, one each', () => {
    const found = rowsAround(source([line(1), line(4)], {}, [2, 3]), texts, 1, 1, 9);
    expect(shown(found.specs)).toBe('l1 u2 u3 l4 cursor');
  });

  it('ends at what is not known, where it cannot know how much that is', () => {
    const found = rowsAround(source([line(1), line(40)], { isDense: false }, [2, 3]), texts, 1, 9, 9);
    expect(shown(found.specs)).toBe('l1 u2');
    // The view stands still there.
    expect(found.hasEnd).toBe(true);
  });

  it('tells what is gone: between lines, and before the first one', () => {
    const lines = [line(7), line(20, { gap: { bytes: 120, lostBytes: 0 } })];
    const cut = rowsAround(source(lines, { first: 7, isCutAtStart: true }), texts, 7, 9, 9);
    expect(shown(cut.specs)).toBe('[70 0-7] l7 [120 7-20] l20 cursor');
  });

  it('has no rows where there is nothing', () => {
    const found = rowsAround(source([], { first: 1, last: 0 }), texts, 1, 5, 5);
    expect(found).toMatchObject({ anchorKey: null, hasStart: true, hasEnd: true });
    expect(shown(found.specs)).toBe('cursor');
  });
});
