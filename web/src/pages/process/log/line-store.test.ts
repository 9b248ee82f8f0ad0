import { describe, expect, it } from 'vitest';
import type { LogLine } from './line';
import { LineStore } from './line-store';

function line(number: number, text = String(number)): LogLine {
  return {
    number,
    at: 0,
    stream: 'stdout',
    text,
    offset: number * 10,
    terminated: true,
    clippedBytes: 0,
    skippedBytes: 0,
    binary: false,
  };
}

function range(from: number, to: number, step = 1): LogLine[] {
  const lines = [];
  for (let number = from; number <= to; number += step) lines.push(line(number));
  return lines;
}

describe('LineStore', () => {
  it('tells lines, missing lines and unknown numbers apart', () => {
    const store = new LineStore();
    store.insert(1, 10, range(2, 10, 2));
    expect(store.get(4)?.text).toBe('4');
    expect(store.get(5)).toBeNull();
    expect(store.get(11)).toBeUndefined();
  });

  it('finds neighbours over pieces, up to what is not known', () => {
    const store = new LineStore({ pieces: 9, pieceLines: 1, bytes: 1e9 });
    store.insert(1, 10, [line(3)]);
    store.insert(11, 20, []);
    store.insert(21, 30, [line(25)]);
    expect(store.atOrAfter(4, 100)).toEqual({ line: line(25) });
    expect(store.atOrAfter(26, 100)).toEqual({ unknown: 31 });
    expect(store.atOrAfter(26, 30)).toBeNull();
    expect(store.atOrBefore(24, 1)).toEqual({ line: line(3) });
    expect(store.atOrBefore(2, 1)).toBeNull();
    expect(store.atOrBefore(40, 1)).toEqual({ unknown: 40 });
  });

  it('keeps one of each line where pages overlap', () => {
    const store = new LineStore();
    store.insert(5, 8, range(5, 8));
    store.insert(1, 20, range(1, 20));
    store.insert(7, 25, range(7, 25));
    const found = [];
    for (let at = 1; ; ) {
      const next = store.atOrAfter(at, 25);
      if (!next || !('line' in next)) break;
      found.push(next.line.number);
      at = next.line.number + 1;
    }
    expect(found).toEqual(range(1, 25).map((one) => one.number));
  });

  it('joins small neighbours and forgets the least lately used piece', () => {
    const store = new LineStore({ pieces: 2, pieceLines: 4, bytes: 1e9 });
    store.insert(1, 2, range(1, 2));
    store.insert(3, 4, range(3, 4));
    expect(store.pieces).toBe(1);
    store.insert(11, 14, range(11, 14));
    store.get(1);
    store.insert(21, 24, range(21, 24));
    expect(store.isKnown(1)).toBe(true);
    expect(store.isKnown(11)).toBe(false);
    expect(store.isKnown(21)).toBe(true);
  });

  it('stays within its memory', () => {
    const store = new LineStore({ pieces: 64, pieceLines: 256, bytes: 100_000 });
    for (let from = 1; from < 100_000; from += 256) store.insert(from, from + 255, range(from, from + 255));
    expect(store.bytes).toBeLessThan(150_000);
  });
});
