import { expect, test } from 'vitest';
import type { Execution } from '../../api/types';
import { sessionsOf, sessionTitle, usedDirectories } from './session-list';

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

test.each([
  ['bash --rcfile /home/ann/.local/state/ostler/shell/bash/rc.bash', 'bash'],
  ["/usr/bin/fish --init-command 'source /state/shell/fish/init.fish'", 'fish'],
  ['bash -c "ls /shell/zsh/"', 'bash -c "ls /shell/zsh/"'],
  ['vim notes', 'vim notes'],
])('%s', (command, title) => {
  expect(sessionTitle(command)).toBe(title);
});
