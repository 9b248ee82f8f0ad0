import { expect, test } from 'vitest';
import { type ConnectionInput, INITIAL, step } from './connection-status';

const after = (...inputs: ConnectionInput[]) => inputs.reduce(step, INITIAL).status;

test('a short interruption is not told', () => {
  expect(after({ kind: 'opened', at: 0 })).toEqual({ kind: 'live', caughtUp: null });
  expect(after({ kind: 'opened', at: 0 }, { kind: 'closed', at: 10, nextTry: 20 })).toEqual({
    kind: 'reconnecting',
    since: 10,
  });
  const back = after(
    { kind: 'opened', at: 0 },
    { kind: 'closed', at: 10, nextTry: 20 },
    { kind: 'opened', at: 30 },
    { kind: 'event' },
  );
  expect(back).toEqual({ kind: 'live', caughtUp: null });
});

test('a long one is told until it is over, and what was missed is counted', () => {
  const lost: ConnectionInput[] = [
    { kind: 'opened', at: 0 },
    { kind: 'closed', at: 10, nextTry: 260 },
    { kind: 'closed', at: 5_010, nextTry: 7_000 },
  ];
  expect(after(...lost)).toEqual({ kind: 'lost', since: 10, nextTry: 7_000 });
  const back: ConnectionInput[] = [
    ...lost,
    { kind: 'opened', at: 7_000 },
    { kind: 'event' },
    { kind: 'event' },
  ];
  expect(after(...back)).toEqual({ kind: 'live', caughtUp: 2 });
  expect(after(...back, { kind: 'tick', at: 10_999 })).toEqual({ kind: 'live', caughtUp: 2 });
  expect(after(...back, { kind: 'tick', at: 11_000 })).toEqual({ kind: 'live', caughtUp: null });
});

test('the clock alone makes an interruption a loss', () => {
  const inputs: ConnectionInput[] = [
    { kind: 'closed', at: 0, nextTry: 250 },
    { kind: 'tick', at: 4_999 },
  ];
  expect(after(...inputs).kind).toBe('reconnecting');
  expect(after(...inputs, { kind: 'tick', at: 5_000 }).kind).toBe('lost');
});
