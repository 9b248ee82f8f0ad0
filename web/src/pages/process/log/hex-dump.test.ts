import { expect, it } from 'vitest';
import { hexRows } from './hex-dump';

it('shows bytes as digits and text', () => {
  const bytes = new Uint8Array([0x00, 0xff, 0x41, 0x7f, ...new Array(13).fill(0x20)]);
  const [first, second] = hexRows(bytes, 0x1000);
  expect(first).toEqual({
    offset: '00001000',
    bytes: '00 ff 41 7f 20 20 20 20  20 20 20 20 20 20 20 20',
    text: '··A·            ',
  });
  expect(second?.offset).toBe('00001010');
  expect(second?.bytes.trim()).toBe('20');
});
