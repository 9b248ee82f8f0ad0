import { expect, test } from 'vitest';
import { KEPT_KEYS, WaitingKeys } from './waiting-keys';

const bytes = (text: string) => new TextEncoder().encode(text);
const texts = (keys: Uint8Array[]) => keys.map((one) => new TextDecoder().decode(one));

test('keys wait in their order, and are taken once', () => {
  const waiting = new WaitingKeys();
  expect(waiting.isEmpty).toBe(true);
  expect(waiting.keep(bytes('a'))).toBe(true);
  expect(waiting.keep(bytes('bc'))).toBe(true);
  expect(waiting.isEmpty).toBe(false);
  expect(texts(waiting.take())).toEqual(['a', 'bc']);
  expect(waiting.take()).toEqual([]);
});

test('of more than is kept, nothing is: neither what came before nor what comes after', () => {
  const waiting = new WaitingKeys();
  waiting.keep(bytes('before'));
  expect(waiting.keep(bytes('x'.repeat(KEPT_KEYS)))).toBe(false);
  expect(waiting.keep(bytes('after'))).toBe(false);
  expect(waiting.take()).toEqual([]);
  expect(waiting.keep(bytes('later'))).toBe(true);
  expect(texts(waiting.take())).toEqual(['later']);
});
