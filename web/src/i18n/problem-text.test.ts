import { expect, test } from 'vitest';
import { ApiError, ConnectionError, problemOf } from '../api/problem';
import { problemText } from './problem-text';

test('the text of the browser for a missing answer is shown to nobody', () => {
  expect(problemText(new ConnectionError('Failed to fetch'))).toMatch(/^The daemon does not answer/);
});

test('what the daemon says is shown as it is', () => {
  const refused = new ApiError({ ...problemOf(409, null), message: 'it ended already' });
  expect(problemText(refused)).toBe('it ended already');
  expect(problemText('other')).toBe('other');
});
