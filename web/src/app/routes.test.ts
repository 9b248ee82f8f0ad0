import { expect, test } from 'vitest';
import { matchRoute } from './routes';

test.each([
  ['', 'processes', '', ''],
  ['processes/', 'processes', '', ''],
  ['p/01jd7q4m', 'process', '01jd7q4m', ''],
  ['p/01jd7q4m/env', 'process', '01jd7q4m', 'env'],
  ['services/my%20web', 'service', 'my web', ''],
  ['services/%E0%A4%A', 'service', '%E0%A4%A', ''],
  ['settings/tokens', 'settings', '', 'tokens'],
  ['p', 'not-found', '', ''],
  ['p//env', 'not-found', '', ''],
  ['nowhere', 'not-found', '', ''],
])('%s', (path, name, id, section) => {
  expect(matchRoute(path)).toEqual({ name, id, section });
});
