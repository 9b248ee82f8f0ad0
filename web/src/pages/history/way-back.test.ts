import { expect, test } from 'vitest';
import { parseHistoryView } from './history-query';
import { WayBack } from './way-back';

const view = (query: string) => parseHistoryView(new URLSearchParams(query));

test('the way back is that of the way there', () => {
  const way = new WayBack();
  way.leave(view('label=ci'), 300);
  way.leave(view('label=ci&before=300&id=x'), 200);
  expect(way.newer(view('label=ci&before=200'))).toBe(300);
  expect(way.newer(view('label=ci&before=300&id=y'))).toBeNull();
});

test('the page before one that nobody came to from there is not known', () => {
  const way = new WayBack();
  expect(way.newer(view('before=200'))).toBeUndefined();
  way.leave(view('label=ci&before=300'), 200);
  expect(way.newer(view('label=other&before=200'))).toBeUndefined();
});
