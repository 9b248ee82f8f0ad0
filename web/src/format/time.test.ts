import { expect, test } from 'vitest';
import { dayOf, formatAgo, formatClock, formatFull, formatListTime } from './time';

const style = { language: 'en', utc: true };
const now = new Date('2026-11-24T14:25:10.500Z');

test('lists show the clock today, the weekday this week, then the date', () => {
  const of = (text: string) => formatListTime(new Date(text), now, style);
  expect(of('2026-11-24T00:00:01Z')).toBe('00:00:01');
  expect(of('2026-11-23T23:59:59Z')).toBe('Mon 23:59');
  expect(of('2026-11-17T14:25:00Z')).toBe('11/17/2026');
  expect(of('2026-11-25T14:25:00Z')).toBe('11/25/2026');
});

test('clock, day, full and age', () => {
  expect(formatClock(now, style, true)).toBe('14:25:10.500');
  expect(formatClock(new Date('2026-11-24T00:05:00Z'), style)).toBe('00:05:00');
  expect(dayOf(now, style)).toBe('Tue, Nov 24, 2026');
  expect(formatFull(now, style)).toContain('14:25:10.500');
  expect(formatAgo(new Date('2026-11-24T14:22:09Z'), now, 'en')).toBe('3 minutes ago');
  expect(formatAgo(new Date('2026-11-22T14:22:09Z'), now, 'de')).toBe('vorgestern');
});
