import { expect, test } from 'vitest';
import { diffQuery } from './workspace-diff';

test('a path is asked for as it is', () => {
  expect(diffQuery('a b/ü.txt')).toEqual({ path: ['a b/ü.txt'] });
  expect(diffQuery(null)).toEqual({});
});

test('a path that is not UTF-8 is asked for by its bytes', () => {
  expect(diffQuery({ base64: 'Yf8=' })).toEqual({ path_base64: ['Yf8='] });
});
