import { expect, test } from 'vitest';
import { ApiError, ConnectionError, problemOf, withoutSilence } from './problem';

test('that nobody answered is outdated by an answer, what was answered is not', () => {
  const refused = new ApiError(problemOf(409, null));
  expect(withoutSilence(new ConnectionError('Failed to fetch'))).toBeNull();
  expect(withoutSilence(refused)).toBe(refused);
  expect(withoutSilence(null)).toBeNull();
});
