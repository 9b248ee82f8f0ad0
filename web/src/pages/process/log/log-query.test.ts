import { describe, expect, it } from 'vitest';
import { matchParameters, parseLogQuery, streamsOf, timeParameter } from './log-query';

const parse = (text: string) => parseLogQuery(new URLSearchParams(text));

describe('parseLogQuery', () => {
  it('reads what is in an address', () => {
    const query = parse(
      'stream=err&q=wal%3A%3A&mode=regex&line=48100&wrap=1&time=abs&since=14:20&until=14:25&only=1',
    );
    expect(query).toEqual({
      stream: 'err',
      match: { text: 'wal::', regex: true, matchCase: false },
      only: true,
      chosen: { from: 48_100, to: 48_100 },
      since: '14:20',
      until: '14:25',
      wraps: true,
      time: 'clock',
    });
  });

  it('takes nothing and nonsense as the preference of the person', () => {
    for (const text of ['', 'stream=x&line=-1&time=x&mode=regex']) {
      expect(parse(text)).toMatchObject({
        stream: 'both',
        match: null,
        chosen: null,
        wraps: null,
        time: null,
      });
    }
  });

  it('is what is written', () => {
    const match = { text: 'a b', regex: true, matchCase: true };
    const written = Object.entries(matchParameters(match)).map(([name, value]) => [name, value ?? '']);
    expect(parseLogQuery(new URLSearchParams(written)).match).toEqual(match);
    for (const time of ['off', 'clock', 'elapsed'] as const) {
      expect(parse(`time=${timeParameter(time)}`).time).toBe(time);
    }
  });
});

it('has the streams of a choice', () => {
  expect(streamsOf('both')).toEqual([]);
  expect(streamsOf('err')).toEqual(['stderr']);
});
