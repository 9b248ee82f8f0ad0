import { expect, it } from 'vitest';
import type { Execution, Service } from '../../api/types';
import { evidenceOf } from './evidence';

const state = {
  evidence: null,
  signs: [],
  warnings: [],
  health: null,
  waits_for: null,
  backoff_until: null,
  last_end: null,
};

function service(
  fields: Partial<Service>,
  serviceState: object,
  execution: Partial<Execution> = {},
): Service {
  return {
    name: 'web',
    status: 'ready',
    living: true,
    command: 'x',
    defined_in: null,
    depends_on: [],
    execution: {
      start_time: '2026-11-24T17:05:18.000Z',
      attempt: 1,
      duration: 12,
      error_message: null,
      status: 'running',
      ...execution,
      service: { ...state, ...serviceState },
    } as unknown as Execution,
    ...fields,
  };
}

it('a ready service tells what was seen, and how long after its start', () => {
  const seen = {
    evidence: '127.0.0.1:5173 listens',
    signs: [{ kind: 'socket', detail: '', at: '2026-11-24T17:05:19.800Z' }],
  };
  expect(evidenceOf(service({}, seen))).toEqual({ kind: 'ready_after', time: '1.8 s', seen: seen.evidence });
  // The first start is no measure of a later attempt.
  expect(evidenceOf(service({}, seen, { attempt: 2 }))).toEqual({ kind: 'seen', seen: seen.evidence });
});

it('a service that is not ready tells what it waits for', () => {
  const waits = { waits_for: 'port 8219 to listen' };
  expect(evidenceOf(service({ status: 'starting' }, waits))).toEqual({
    kind: 'waits_for',
    what: waits.waits_for,
  });
  expect(evidenceOf(service({ status: 'pending', waits_for: "'db' to be ready" }, {}))).toEqual({
    kind: 'waits_for',
    what: "'db' to be ready",
  });
  expect(evidenceOf(service({ status: 'running' }, {}))).toEqual({ kind: 'nothing_to_see' });
});

it('a service that is ill, between attempts or ended tells why', () => {
  expect(
    evidenceOf(service({ status: 'degraded' }, { health: { ok: false, detail: 'answered 500' } })),
  ).toEqual({
    kind: 'unhealthy',
    seen: 'answered 500',
  });
  const backoff = { backoff_until: '2026-11-24T17:06:00Z', last_end: 'exit code 3' };
  expect(evidenceOf(service({ status: 'starting' }, backoff))).toEqual({
    kind: 'starts_again',
    until: backoff.backoff_until,
    end: 'exit code 3',
  });
  expect(
    evidenceOf(service({ living: false, status: 'failed' }, {}, { error_message: 'exit code 1' })),
  ).toEqual({
    kind: 'ended',
    end: 'exit code 1',
    time: '12.0 s',
  });
  expect(evidenceOf(service({ living: false, status: 'stopped', execution: null }, {}))).toEqual({
    kind: 'never_ran',
  });
});
