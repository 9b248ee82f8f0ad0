import { expect, test, vi } from 'vitest';
import type { Interaction } from '../api/types';

vi.mock('./interactions.svelte', () => ({ interactions: {} }));
vi.mock('./executions.svelte', () => ({ executions: {} }));
vi.mock('../app/router.svelte', () => ({}));
vi.mock('../app/preferences.svelte', () => ({ preferences: {} }));
vi.mock('../i18n/index.svelte', () => ({
  t: (key: string, parameters: object = {}) => `${key} ${JSON.stringify(parameters)}`,
}));
vi.stubGlobal('window', {});

const { notificationText } = await import('./notifications.svelte');

const question = (content: Partial<Interaction>): Interaction => ({
  id: 'i1',
  kind: 'input_request',
  message: 'Name:',
  status: 'open',
  created_at: '',
  expires_at: '',
  ...content,
});

test('a notification has no argument of a command and no secret', () => {
  const command = '/usr/bin/deploy --token=hunter2';
  expect(notificationText(question({}), command)).toEqual({
    title: 'inbox.notification_of {"program":"deploy"}',
    body: 'Name:',
  });
  expect(notificationText(question({ secret: true, message: 'hunter2:' }), command).body).toBe(
    'inbox.asks_secret {}',
  );
  const approval = {
    message: `May this run?\n${command}`,
    approval: { rule: 'r', reason: 'talks to other machines', command },
  };
  expect(JSON.stringify(notificationText(question(approval), command))).not.toContain('hunter2');
  expect(notificationText(question({}), '').title).toBe('inbox.notification {}');
});
