import { expect, test } from 'vitest';
import type { AuditEntry } from '../../api/types';
import { commandOf, eventOf, isOfKind, isolationOf, matchesWords, policyOf } from './audit-entry';

function entry(part: Record<string, unknown>): AuditEntry {
  const base = { seq: 812, hash: 'ff3c5a6f', at: '2026-11-24T12:00:00Z', by: { principal: 'uid:0' } };
  return { ...base, ...part } as unknown as AuditEntry;
}

test('what the policy said, and by which rule', () => {
  const said = (policy: string) => policyOf(entry({ event: 'created', detail: { policy } }));
  expect(said("deny by rule 'no-root': rm -rf / is never right")).toEqual({
    decision: 'deny',
    rule: 'no-root',
    reason: 'rm -rf / is never right',
  });
  expect(said("allow by rule 'cargo': ")).toMatchObject({ decision: 'allow', rule: 'cargo', reason: '' });
  const message = "denied by rule 'no-shred': it cannot be undone";
  expect(policyOf(entry({ event: 'refused', code: 'policy', message }))).toEqual({
    decision: 'deny',
    rule: 'no-shred',
    reason: 'it cannot be undone',
  });
  expect(said('something newer')).toEqual({ decision: 'other', rule: '', reason: 'something newer' });
  expect(policyOf(entry({ event: 'created', detail: {} }))).toBeNull();
  expect(policyOf(entry({ event: 'interaction', detail: { rule: 'ask-deploy' } }))?.rule).toBe('ask-deploy');
});

test('a difference between the isolation asked for and that in force', () => {
  const detail = { level: 'high', in_force: ['landlock'] };
  expect(isolationOf(entry({ event: 'created', detail }))).toEqual({
    asked: 'high',
    complete: true,
    missing: [],
    inForce: ['landlock'],
  });
  const missing = [{ ability: 'own_cgroup', reason: 'no cgroup v2' }];
  expect(isolationOf(entry({ event: 'created', missing, detail }))).toMatchObject({
    complete: false,
    missing,
  });
  expect(isolationOf(entry({ event: 'refused', detail }))).toMatchObject({ asked: 'high', complete: null });
  expect(isolationOf(entry({ event: 'started' }))).toBeNull();
  const degraded = entry({ event: 'degraded', ability: 'durable', event_detail: 'the disk is full' });
  expect(isolationOf(degraded)?.missing).toEqual([{ ability: 'durable', reason: 'the disk is full' }]);
  expect(commandOf(degraded)).toBe('');
});

test('an event has its own fields under their own names', () => {
  const health = entry({
    event: 'health',
    ok: false,
    event_detail: 'answered 500',
    detail: { face: 'rest' },
  });
  expect(eventOf(health)).toMatchObject({ ok: false, detail: 'answered 500', request: { face: 'rest' } });
  expect(eventOf(entry({ event: 'lease_taken', event_by: 'uid:8' }))).toMatchObject({ by: 'uid:8' });
});

test('requests, refusals, and all that became of them', () => {
  const kinds = (event: string) =>
    (['requests', 'refused', 'all'] as const).filter((kind) => isOfKind(entry({ event }), kind));
  expect(kinds('created')).toEqual(['requests', 'all']);
  expect(kinds('refused')).toEqual(['requests', 'refused', 'all']);
  expect(kinds('finished')).toEqual(['all']);
});

test('words are found in who, what, ids and details', () => {
  const one = entry({
    event: 'created',
    detail: { command: 'cargo Build', labels: ['ci'] },
    execution: '01a2',
  });
  for (const words of [['cargo', 'build'], ['ci'], ['812'], ['ff3c'], ['uid:0'], ['01a2'], ['accepted']]) {
    expect(matchesWords(one, 'Accepted', words)).toBe(true);
  }
  expect(matchesWords(one, 'Accepted', ['cargo', 'test'])).toBe(false);
});
