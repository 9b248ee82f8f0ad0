import { afterEach, expect, test, vi } from 'vitest';
import { ClockOffset, observeServerDate, observeServerTime, serverNow } from './server-clock';

const AT = Date.UTC(2026, 0, 1);

afterEach(() => vi.useRealTimers());

test('clocks that agree are left alone, whatever the answers take', () => {
  const offset = new ClockOffset();
  expect(offset.ms).toBe(0);
  offset.observe(AT, 2_000, AT + 200, AT + 900);
  offset.observe(AT + 5_000, 2_000, AT + 4_000, AT + 9_000);
  offset.observe(AT + 9_500, 0, AT + 9_400, AT + 9_600);
  expect(offset.ms).toBe(0);
});

test('the offset is narrowed by each answer', () => {
  const offset = new ClockOffset();
  // The browser is 10 minutes ahead.
  const browser = (ms: number) => AT + 600_000 + ms;
  offset.observe(AT, 2_000, browser(0), browser(4_000));
  expect(Math.abs(offset.ms + 600_000)).toBeLessThanOrEqual(3_000);
  for (const ms of [10_050, 20_950]) {
    const date = AT + Math.floor(ms / 1_000) * 1_000;
    offset.observe(date, 2_000, browser(ms), browser(ms + 10));
  }
  expect(Math.abs(offset.ms + 600_000)).toBeLessThanOrEqual(1_000);
  offset.observe(AT + 30_000, 0, browser(30_000), browser(30_010));
  expect(Math.abs(offset.ms + 600_000)).toBeLessThanOrEqual(10);
});

test('a clock that is set is followed', () => {
  const offset = new ClockOffset();
  offset.observe(AT, 2_000, AT + 600_000, AT + 600_010);
  offset.observe(AT + 1_000, 2_000, AT + 1_100, AT + 1_200);
  expect(offset.ms).toBe(0);
});

test('what an answer says of the time decides, one without a date does not', () => {
  vi.useFakeTimers({ now: AT + 600_000 });
  observeServerDate(new Headers(), Date.now());
  expect(serverNow()).toBe(AT + 600_000);
  observeServerDate(new Headers({ Date: new Date(AT).toUTCString() }), Date.now());
  expect(Math.abs(serverNow() - AT)).toBeLessThanOrEqual(1_000);
  observeServerTime(AT + 300, Date.now());
  expect(serverNow()).toBe(AT + 300);
});
