import { expect, test } from 'vitest';
import type { Execution } from '../api/types';
import { attentionRank, displayState, exitText, historyState } from './display-state';

function execution(part: Partial<Execution>): Execution {
  const base = {
    phase: 'running',
    status: 'running',
    paused: false,
    cause: null,
    signal: null,
    exit_code: null,
  };
  return { ...base, ...part } as Execution;
}

const service = (status: string) => ({ service: { status } as NonNullable<Execution['service']> });

test.each([
  [execution({}), false, 'running'],
  [execution({ phase: 'starting' }), false, 'starting'],
  [execution({}), true, 'waiting'],
  [execution({ paused: true }), false, 'paused'],
  [execution({ phase: 'stopping' }), true, 'stopping'],
  [execution(service('ready')), false, 'ready'],
  [execution(service('responding')), false, 'responding'],
  [execution({ phase: 'starting', ...service('crash_looping') }), false, 'crash_looping'],
  [execution({ phase: 'finished', status: 'completed', cause: { kind: 'exited' } }), true, 'completed'],
  [execution({ phase: 'finished', status: 'failed', cause: { kind: 'exited' } }), false, 'failed'],
  [execution({ phase: 'finished', status: 'failed', cause: { kind: 'signaled' } }), false, 'failed'],
  [
    execution({ phase: 'finished', status: 'error', cause: { kind: 'lost', reason: 'reboot' } as never }),
    false,
    'lost',
  ],
  [
    execution({ phase: 'finished', status: 'error', cause: { kind: 'out_of_memory' } }),
    false,
    'out_of_memory',
  ],
  [execution({ phase: 'finished', status: 'terminated', cause: { kind: 'stopped' } }), false, 'terminated'],
  [
    execution({
      phase: 'finished',
      status: 'terminated',
      cause: { kind: 'timed_out', clock: 'wall' } as never,
    }),
    false,
    'timed_out',
  ],
] as [Execution, boolean, string][])('%#', (it, waiting, state) => {
  expect(displayState(it, waiting)).toBe(state);
});

test('what asks comes first, then new failures, then what is active', () => {
  const ranks = [
    attentionRank('waiting', false),
    attentionRank('failed', true),
    attentionRank('running', false),
    attentionRank('failed', false),
    attentionRank('completed', true),
  ];
  expect(ranks).toEqual([0, 1, 2, 3, 3]);
});

test('an end is told by its signal, or its code', () => {
  expect(exitText(execution({ phase: 'finished', exit_code: 0 }))).toBe('0');
  expect(exitText(execution({ phase: 'finished', signal: 'KILL' }))).toBe('SIGKILL');
  expect(exitText(execution({ phase: 'finished', signal: 'SIGKILL' }))).toBe('SIGKILL');
  expect(exitText(execution({ exit_code: 1 }))).toBeNull();
});

test('rows of the history have the same states', () => {
  expect(historyState({ status: 'running' })).toBe('running');
  expect(historyState({ status: 'succeeded', cause: 'exited' })).toBe('completed');
  expect(historyState({ status: 'failed', cause: 'exited' })).toBe('failed');
  expect(historyState({ status: 'failed', cause: 'out_of_memory' })).toBe('out_of_memory');
  expect(historyState({ status: 'failed', cause: 'spawn_failed' })).toBe('spawn_failed');
  expect(historyState({ status: 'timed_out', cause: 'timed_out' })).toBe('timed_out');
  expect(historyState({ status: 'stopped', cause: 'stopped' })).toBe('terminated');
  expect(historyState({ status: 'lost', cause: 'lost' })).toBe('lost');
});
