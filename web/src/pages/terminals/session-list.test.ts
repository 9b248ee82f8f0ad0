import { expect, test } from 'vitest';
import type { Execution } from '../../api/types';
import { sessionsOf, usedDirectories } from './session-list';

const execution = (id: string, phase: Execution['phase'], terminal = true) =>
  ({ id, phase, ...(terminal ? { terminal: { cols: 80, rows: 24 } } : {}) }) as Execution;

test('sessions that run and those that ended', () => {
  const all = [execution('a', 'running'), execution('b', 'finished'), execution('c', 'running', false)];
  const { living, ended } = sessionsOf(all);
  expect(living.map(({ id }) => id)).toEqual(['a']);
  expect(ended.map(({ id }) => id)).toEqual(['b']);
});

test('each directory once', () => {
  expect(usedDirectories(['/b', '/a', '/b', 'relative', ''])).toEqual(['/b', '/a']);
});
