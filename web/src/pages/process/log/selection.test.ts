import { describe, expect, it } from 'vitest';
import type { LogLine } from './line';
import { clip, copiedText, formatRange, ordered, parseRange, rangeTo, selectedText } from './selection';

const line = (number: number, text: string): LogLine => ({
  number,
  at: 0,
  stream: 'stdout',
  text,
  offset: 0,
  terminated: true,
  clippedBytes: 0,
  skippedBytes: 0,
  binary: false,
});

describe('ranges of lines', () => {
  it('are written and read', () => {
    expect(formatRange(rangeTo(9, 4))).toBe('4-9');
    expect(formatRange(rangeTo(4, 4))).toBe('4');
    expect(parseRange('4-9')).toEqual({ from: 4, to: 9 });
    expect(parseRange('9-4')).toEqual({ from: 4, to: 9 });
    expect(parseRange('500000')).toEqual({ from: 500_000, to: 500_000 });
    for (const wrong of [null, '', '0', '-3', 'x', '1e9', '3-', '9999999999999999']) {
      expect(parseRange(wrong)).toBeNull();
    }
  });
});

describe('a selection', () => {
  const backward = { anchor: { line: 9, column: 2 }, focus: { line: 3, column: 5 } };

  it('has an order and a direction', () => {
    expect(ordered(backward)).toEqual([backward.focus, backward.anchor]);
  });

  it('is cut to the lines in view', () => {
    expect(clip(backward, { from: 4, to: 20 })).toEqual({
      anchor: { line: 9, column: 2 },
      focus: { line: 4, column: 0 },
    });
    expect(clip(backward, { from: 10, to: 20 })).toBeNull();
    expect(clip(backward, { from: 1, to: 5 })).toEqual({
      anchor: { line: 5, column: Number.POSITIVE_INFINITY },
      focus: { line: 3, column: 5 },
    });
  });

  it('copies what was printed', () => {
    const lines = [line(3, 'abcdefgh\r'), line(4, '\x1b[31mred\x1b[0m'), line(9, 'xyz')];
    expect(selectedText(backward, lines)).toBe('fgh\nred\nxy');
  });
});

describe('copiedText', () => {
  it('joins the parts of a line that lost its middle', () => {
    expect(copiedText({ ...line(1, 'end'), head: line(1, 'begin') })).toBe('beginend');
  });
});
