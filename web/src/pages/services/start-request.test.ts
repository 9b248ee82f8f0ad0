import { expect, it } from 'vitest';
import { checkForm, EMPTY_FORM, startRequest } from './start-request';

const form = { ...EMPTY_FORM, command: ' npm run dev ', cwd: '/home/a/shop' };

it('an empty form says what it needs', () => {
  expect(Object.keys(checkForm(EMPTY_FORM)).sort()).toEqual(['command', 'cwd']);
  expect(checkForm(form)).toEqual({});
});

it('each value is checked', () => {
  const bad = {
    ...form,
    name: 'My Web',
    port: '70000',
    restart: 'always' as const,
    restartMax: '-1',
    readyTimeout: 'soon',
    readyWhen: 'http' as const,
    readyValue: 'localhost',
    environment: 'A=1\nnonsense',
  };
  expect(Object.keys(checkForm(bad)).sort()).toEqual([
    'environment',
    'name',
    'port',
    'readyTimeout',
    'readyValue',
    'restartMax',
  ]);
});

it('what is left empty is left to the daemon', () => {
  expect(startRequest(form)).toEqual({
    command: { shell: { shell: '/bin/sh', script: 'npm run dev' } },
    cwd: '/home/a/shop',
    env: [],
    restart: 'never',
  });
});

it('what is given is in the request', () => {
  const request = startRequest({
    ...form,
    name: 'web',
    port: 'auto',
    restart: 'on_failure',
    restartMax: '3',
    readyWhen: 'tcp',
    readyValue: '5173',
    readyTimeout: '90',
    dependsOn: ['db'],
    environment: 'A=1\n\n B = x=y',
  });
  expect(request).toMatchObject({
    name: 'web',
    port: 'auto',
    restart: { on_failure: { max: 3 } },
    ready_when: { tcp: 5173 },
    ready_timeout_ms: 90_000,
    depends_on: ['db'],
    env: [
      ['A', '1'],
      ['B', ' x=y'],
    ],
  });
});
