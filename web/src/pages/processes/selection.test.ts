import { expect, test } from 'vitest';
import { idsBetween, Selection } from './selection.svelte';

const SHOWN = ['a', 'b', 'c', 'd', 'e'];

test('ranges go either way, and are one row where their beginning is gone', () => {
  expect(idsBetween(SHOWN, 'b', 'd')).toEqual(['b', 'c', 'd']);
  expect(idsBetween(SHOWN, 'd', 'b')).toEqual(['b', 'c', 'd']);
  expect(idsBetween(SHOWN, 'x', 'b')).toEqual(['b']);
  expect(idsBetween(SHOWN, null, 'b')).toEqual(['b']);
  expect(idsBetween(SHOWN, 'b', 'x')).toEqual([]);
});

test('one, a range, all, none', () => {
  const selection = new Selection();
  selection.toggle('b');
  selection.extendTo('d', SHOWN);
  expect([...selection.ids]).toEqual(['b', 'c', 'd']);
  selection.toggle('c');
  expect([...selection.ids]).toEqual(['b', 'd']);
  selection.toggleAll(SHOWN);
  expect(selection.size).toBe(5);
  selection.keep((id) => id !== 'a');
  expect(selection.size).toBe(4);
  selection.toggleAll(['b', 'c', 'd', 'e']);
  expect(selection.size).toBe(0);
});
