import { expect, it } from 'vitest';
import { RateMeter } from './rate';

it('counts over the last two seconds', () => {
  const meter = new RateMeter();
  expect(meter.perSecond).toBeNull();
  for (let at = 0; at <= 5_000; at += 100) meter.add(at, at <= 3_000 ? at * 10 : 30_000);
  expect(meter.perSecond).toBe(0);
  for (let at = 5_100; at <= 9_000; at += 100) meter.add(at, 30_000 + (at - 5_000) * 50);
  expect(meter.perSecond).toBe(50_000);
});
