import { describe, expect, it } from 'vitest';
import { parseTime } from './time-range';

const NOON = Date.parse('2026-11-24T12:00:00Z');
const at = (text: string) => {
  const parsed = parseTime(text, NOON, true);
  return parsed === null ? null : new Date(parsed).toISOString();
};

describe('parseTime', () => {
  it('reads a clock of the same day, or of the day before', () => {
    expect(at('11:20')).toBe('2026-11-24T11:20:00.000Z');
    expect(at('9:05:07.5')).toBe('2026-11-24T09:05:07.500Z');
    expect(at('14:20')).toBe('2026-11-23T14:20:00.000Z');
  });

  it('reads how long ago', () => {
    expect(at('5m')).toBe('2026-11-24T11:55:00.000Z');
    expect(at('1.5h')).toBe('2026-11-24T10:30:00.000Z');
  });

  it('reads dates', () => {
    expect(at('2026-11-20T10:00:00Z')).toBe('2026-11-20T10:00:00.000Z');
    expect(at('2026-11-20 10:00')).toBe('2026-11-20T10:00:00.000Z');
  });

  it('takes nothing else', () => {
    for (const text of ['', 'x', '25:00', '10:60', '5', '<b>']) expect(at(text)).toBeNull();
  });
});
