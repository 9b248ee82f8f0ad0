import { expect, test } from 'vitest';
import { extraKey, isReply, messages, watchedKey, webAddress, withCtrl } from './typed-keys';

test('arrows of a terminal and of an application', () => {
  expect(extraKey('up', false)).toBe('\x1b[A');
  expect(extraKey('up', true)).toBe('\x1bOA');
  expect(extraKey('escape', true)).toBe('\x1b');
  expect(extraKey('tab', true)).toBe('\t');
});

test.each([
  ['c', '\x03'],
  ['C', '\x03'],
  ['[', '\x1b'],
  ['@', '\x00'],
  [' ', '\x00'],
  ['?', '\x7f'],
  ['1', '1'],
  ['ä', 'ä'],
  ['\x1b[A', '\x1b[A'],
])('Ctrl and %j', (sign, control) => {
  expect(withCtrl(sign)).toBe(control);
});

test('long input is sent in pieces, whole', () => {
  const bytes = new Uint8Array(70_000).map((_, index) => index % 251);
  const pieces = [...messages(bytes)];
  expect(pieces.map((piece) => piece.length)).toEqual([32_768, 32_768, 4_464]);
  expect(pieces.flatMap((piece) => [...piece])).toEqual([...bytes]);
  expect([...messages(new Uint8Array())]).toEqual([]);
});

const press = (key: string, modifiers: object = {}) => ({
  key,
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  ...modifiers,
});

test('keys of a watcher', () => {
  expect(watchedKey(press('x'), false)).toBe('explain');
  expect(watchedKey(press('Enter'), false)).toBe('explain');
  expect(watchedKey(press('Tab'), false)).toBe('pass');
  expect(watchedKey(press('k', { ctrlKey: true }), false)).toBe('pass');
  expect(watchedKey(press('c', { ctrlKey: true }), false)).toBe('explain');
  expect(watchedKey(press('c', { ctrlKey: true }), true)).toBe('pass');
  expect(watchedKey(press('PageUp'), false)).toBe('page_up');
});

test.each([
  ['https://example.org/a?b#c', 'https://example.org/a?b#c'],
  ['HTTP://localhost:5173', 'http://localhost:5173/'],
  ['javascript:alert(1)', null],
  ['file:///etc/passwd', null],
  ['data:text/html,x', null],
  ['no address', null],
])('%s', (text, address) => {
  expect(webAddress(text)).toBe(address);
});

test.each([
  ['\x1b[24;80R', true],
  ['\x1b[?1;2c', true],
  ['\x1b[>0;276;0c', true],
  ['\x1b[0n', true],
  ['\x1b[?2026;2$y', true],
  ['\x1b]11;rgb:ffff/ffff/ffff\x07', true],
  ['\x1bP1$r0m\x1b\\', true],
  ['\x1b[A', false],
  ['\x1b[15~', false],
  ['\x1b', false],
  ['n', false],
  ['\x1b[200~text\x1b[201~', false],
])('%j is a reply: %s', (text, reply) => {
  expect(isReply(text)).toBe(reply);
});
