import { describe, expect, it, vi } from 'vitest';

// Texts are looked up without a page.
vi.mock('../../../i18n/index.svelte', async () => {
  const { translate } = await import('../../../i18n/translate');
  const { default: messages } = await import('../../../i18n/messages/en/process.json');
  const known = Object.fromEntries(Object.entries(messages).map(([key, text]) => [`process.${key}`, text]));
  return {
    t: (key: string, parameters: Record<string, string | number>) =>
      translate({ language: 'en', messages: known, fallback: known }, key, parameters),
  };
});

import type { LedgerEvent } from '../../../api/types';
import { eventWords } from './event-words';

const event = (fields: Record<string, unknown>) =>
  ({ at: '2026-11-24T12:00:00Z', cursor: 1, ...fields }) as unknown as LedgerEvent;

describe('eventWords', () => {
  it.each([
    [{ event: 'created', request: { policy: 'cargo *' } }, 'Allowed by rule cargo *', 'plain'],
    [{ event: 'started', attempt: 1, pid: 48213 }, 'Started, PID 48213', 'plain'],
    [{ event: 'started', attempt: 2, pid: 48213 }, 'Started again, attempt 2, PID 48213', 'plain'],
    [{ event: 'exited', attempt: 1, status: { signal: 9 } }, 'The leader was ended by SIGKILL', 'bad'],
    [
      { event: 'alert', alert: 'memory', state: 'raised', threshold: 4e8, value: 5e8 },
      'Memory passed 400 MB (500 MB)',
      'notice',
    ],
    [
      { event: 'stopping', order: { kind: 'requested', by: 'uid:0', force: false } },
      'uid:0 asked it to stop',
      'plain',
    ],
    [{ event: 'trimmed', from: 0, to: 1_500, reason: 'cleared' }, '1.5 kB of output cleared', 'notice'],
    [
      { event: 'finished', ending: { cause: { kind: 'lost', reason: 'reboot' } } },
      'Its end is unknown: the machine was restarted',
      'bad',
    ],
    [{ event: 'of_a_newer_daemon' }, 'of_a_newer_daemon', 'plain'],
  ])('%j', (fields, text, tone) => {
    expect(eventWords(event(fields))).toEqual({ text, tone });
  });
});
