import { expect, test } from 'vitest';
import { SseParser } from './sse-parser';

const text =
  ': hello\r\nid: 7\nevent: x\ndata: a\ndata:b\n\nretry: 1000\ndata:  c\r\r\nid\ndata\n\nevent: none\n\n';

test('events are the same however the text is cut', () => {
  const whole = new SseParser().push(text);
  expect(whole).toEqual([
    { id: '7', event: 'x', data: 'a\nb' },
    { id: '7', event: 'message', data: ' c' },
    { id: '', event: 'message', data: '' },
  ]);
  for (let size = 1; size < 6; size += 1) {
    const parser = new SseParser();
    const found = [];
    for (let at = 0; at < text.length; at += size) found.push(...parser.push(text.slice(at, at + size)));
    expect(found).toEqual(whole);
  }
});
