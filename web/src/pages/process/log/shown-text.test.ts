import { describe, expect, it } from 'vitest';
import type { Run } from './ansi';
import { cutRuns, findPlain, lastState, markRuns, utf8Length, visibleControls } from './shown-text';

const run = (text: string): Run => ({ text, style: null });

describe('lastState', () => {
  it('takes CRLF as an end of line', () => {
    expect(lastState('a\r')).toEqual({ text: 'a', redraws: 0 });
  });

  it('shows the last of the states that were drawn over each other', () => {
    expect(lastState('\r1%\r2%\r3%\r')).toEqual({ text: '3%', redraws: 2 });
    expect(lastState('10%\r\r20%')).toEqual({ text: '20%', redraws: 1 });
    expect(lastState('\r\r')).toEqual({ text: '', redraws: 0 });
  });
});

describe('visibleControls', () => {
  it('shows control characters and keeps tabs', () => {
    expect(visibleControls('a\0\x08\tb\x7f')).toBe('a␀␈\tb␡');
  });
});

describe('cutRuns', () => {
  it('cuts after so many characters, and says how many are left out', () => {
    expect(cutRuns([run('abc'), run('def'), run('g')], 4)).toEqual({ runs: [run('abc'), run('d')], cut: 3 });
    expect(cutRuns([run('abc')], 3)).toEqual({ runs: [run('abc')], cut: 0 });
  });

  it('never cuts a character in two', () => {
    expect(cutRuns([run('a😀b')], 2)).toEqual({ runs: [run('a')], cut: 3 });
  });
});

describe('markRuns', () => {
  it('divides runs at the ends of matches', () => {
    const marked = markRuns([run('abcd'), run('ef')], findPlain('abcdef', 'DE', false));
    expect(marked.map(({ text, hit }) => [text, hit])).toEqual([
      ['abc', false],
      ['d', true],
      ['e', true],
      ['f', false],
    ]);
  });
});

describe('findPlain', () => {
  it('finds every place, with or without regard to case', () => {
    expect(findPlain('aAaA', 'aa', false)).toEqual([
      { from: 0, to: 2 },
      { from: 2, to: 4 },
    ]);
    expect(findPlain('aAaA', 'Aa', true)).toEqual([{ from: 1, to: 3 }]);
    expect(findPlain('abc', '', true)).toEqual([]);
  });
});

describe('utf8Length', () => {
  it('counts bytes', () => {
    for (const text of ['abc', 'äé', '漢字', '😀']) {
      expect(utf8Length(text)).toBe(new TextEncoder().encode(text).length);
    }
  });
});
