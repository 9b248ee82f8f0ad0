import { expect, test } from 'vitest';
import { type RunForm, runErrors, runRequest } from './run-request';

const FORM: RunForm = {
  mode: 'shell',
  command: 'echo "$HOME" | wc',
  directory: '/work',
  description: ' counts ',
  labels: 'ci, web,, ci',
  terminal: false,
  level: '',
  timeout: '',
};

test('a line for the shell, and what was left empty is not said', () => {
  expect(runErrors(FORM)).toEqual({});
  expect(runRequest(FORM)).toEqual({
    command: { shell: { shell: '/bin/sh', script: 'echo "$HOME" | wc' } },
    cwd: '/work',
    description: 'counts',
    labels: ['ci', 'web'],
  });
});

test('arguments one a line, never split again', () => {
  const form: RunForm = {
    ...FORM,
    mode: 'arguments',
    command: 'printf\n%s %s\n\n$HOME\n',
    terminal: true,
    level: 'high',
    timeout: '15m',
  };
  expect(runRequest(form, 'q1')).toMatchObject({
    command: { argv: { program: 'printf', args: ['%s %s', '', '$HOME'] } },
    pty: { cols: 120, rows: 32 },
    isolation: 'high',
    timeout_ms: 900_000,
    approval: 'q1',
  });
});

test('every field that is wrong is named', () => {
  expect(Object.keys(runErrors({ ...FORM, command: ' ', directory: 'work', timeout: 'soon' }))).toEqual([
    'command',
    'directory',
    'timeout',
  ]);
  expect(runErrors({ ...FORM, timeout: '0' })).toHaveProperty('timeout');
});
