import { describe, expect, it } from 'vitest';
import { parseLine, webAddress } from './ansi';

const texts = (line: string) => parseLine(line).runs.map((run) => [run.text, run.style]);

describe('parseLine', () => {
  it('leaves plain text as one run', () => {
    expect(parseLine('a <b>c</b>')).toEqual({
      runs: [{ text: 'a <b>c</b>', style: null }],
      text: 'a <b>c</b>',
      dropped: 0,
    });
    expect(parseLine('').runs).toEqual([]);
  });

  it('applies colours and emphasis until they are reset', () => {
    expect(texts('\x1b[1;31mE\x1b[22mr\x1b[0mr\x1b[97;44mo\x1b[mr')).toEqual([
      ['E', { bold: true, foreground: 1 }],
      ['r', { foreground: 1 }],
      ['r', null],
      ['o', { foreground: 15, background: 4 }],
      ['r', null],
    ]);
  });

  it('reads 256 colours and true colours, with semicolons and colons', () => {
    expect(texts('\x1b[38;5;9ma\x1b[38;5;196mb\x1b[38;5;244mc')).toEqual([
      ['a', { foreground: 9 }],
      ['b', { foreground: '#ff0000' }],
      ['c', { foreground: '#808080' }],
    ]);
    expect(texts('\x1b[48;2;1;2;3;1mx')).toEqual([['x', { background: '#010203', bold: true }]]);
    expect(texts('\x1b[38:2::1:2:3mx')).toEqual([['x', { foreground: '#010203' }]]);
    expect(texts('\x1b[38:2:1:2:3mx')).toEqual([['x', { foreground: '#010203' }]]);
  });

  it('takes parts of an underline as such', () => {
    expect(texts('\x1b[4:3ma\x1b[4:0mb\x1b[>4;2mc')).toEqual([
      ['a', { underline: true }],
      ['b', null],
      ['c', null],
    ]);
  });

  it('drops every other sequence and counts it', () => {
    const parsed = parseLine('a\x1b[2Kb\x1b[10;3Hc\x1b]0;title\x07d\x1bP+q\x1b\\e\x1b(Bf\x1b=g\x9b1mh');
    expect(parsed.text).toBe('abcdefgh');
    expect(parsed.dropped).toBe(6);
  });

  it('drops a sequence that does not end', () => {
    expect(parseLine('a\x1b[31').text).toBe('a');
    expect(parseLine('a\x1b]8;;http://x').text).toBe('a');
    expect(parseLine('a\x1b').text).toBe('a');
  });

  it('keeps hyperlinks of the web', () => {
    expect(parseLine('\x1b]8;id=1;https://x.test/a\x1b\\here\x1b]8;;\x1b\\ there').runs).toEqual([
      { text: 'here', style: null, link: 'https://x.test/a' },
      { text: ' there', style: null },
    ]);
  });

  it.each([
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    'java\nscript:alert(1)',
    ' javascript:alert(1)',
    'data:text/html,<script>alert(1)</script>',
    'vbscript:x',
    'file:///etc/passwd',
    'blob:http://x/1',
    '//x.test',
    'x',
  ])('never links to %j', (address) => {
    expect(webAddress(address)).toBeUndefined();
    const { runs } = parseLine(`\x1b]8;;${address}\x07text\x1b]8;;\x07`);
    expect(runs.every((run) => run.link === undefined)).toBe(true);
  });
});
