import { expect, test } from 'vitest';
import type { Execution, TerminalServerMessage } from '../../api/types';
import { INITIAL, type SessionInput, type SessionState, step } from './session-state';

const SIZE = { cols: 100, rows: 30 };
const message = (content: TerminalServerMessage): SessionInput => ({ kind: 'message', message: content });
const hello = (offset: number, holder: string | null = null): SessionInput =>
  message({ type: 'hello', id: 'x', size: SIZE, offset, alternate: false, title: 'sh', holder });
const lease = (holder: string | null, yours: boolean) => message({ type: 'lease', holder, yours });

function after(...inputs: SessionInput[]): SessionState {
  return inputs.reduce(step, INITIAL);
}

test('a painted screen is no output; what follows is counted', () => {
  const state = after(
    { kind: 'connects', fromOffset: false },
    hello(500),
    { kind: 'bytes', length: 4_000 },
    { kind: 'bytes', length: 20 },
  );
  expect(state).toMatchObject({ link: 'open', offset: 520, size: SIZE, title: 'sh', paints: false });
});

test('output from an offset, a gap and a painting in between', () => {
  const state = after({ kind: 'connects', fromOffset: true }, hello(0), { kind: 'bytes', length: 100 });
  expect(state.offset).toBe(100);
  const gap = step(state, message({ type: 'gap', from: 100, to: 5_000, lost_bytes: 7 }));
  expect(gap).toMatchObject({ offset: 5_000, notice: { kind: 'gap', bytes: 4_900, lost: 7 } });
  const painted = [message({ type: 'paint', offset: 5_100 }), { kind: 'bytes', length: 800 } as const].reduce(
    step,
    gap,
  );
  expect(painted).toMatchObject({ offset: 5_100, paints: false });
});

test('the lease: asked for, granted, taken over by somebody else', () => {
  const asked = after(hello(0, 'ann'), { kind: 'asks' });
  expect(asked).toMatchObject({ typing: 'waiting', holder: 'ann' });
  // News of others do not answer the question.
  expect(step(asked, lease('bob', false)).typing).toBe('waiting');
  const typing = step(asked, lease('me', true));
  expect(typing).toMatchObject({ typing: 'typing', holder: 'me', notice: null });
  expect(step(typing, lease('ann', false))).toMatchObject({
    typing: 'watching',
    holder: 'ann',
    notice: { kind: 'taken_over', holder: 'ann' },
  });
  expect(step(typing, { kind: 'hands_back', expired: true })).toMatchObject({
    typing: 'watching',
    notice: { kind: 'lease_over' },
  });
});

test('a refusal of the lease is told, and nothing is typed', () => {
  const refused = message({
    type: 'refused',
    code: 'process_control_error',
    message: 'ann types',
    take: true,
  });
  expect(after(hello(0, 'ann'), { kind: 'asks' }, refused)).toMatchObject({
    typing: 'watching',
    notice: { kind: 'refused', message: 'ann types' },
  });
});

test('who typed asks again after an interruption, and who watched does not', () => {
  const typed = after(hello(0), { kind: 'asks' }, lease('me', true), { kind: 'broken' });
  expect(typed).toMatchObject({ link: 'broken', typing: 'watching', holder: null, resumes: true });
  // Further attempts that fail change nothing.
  expect(step(step(typed, { kind: 'broken' }), hello(10))).toMatchObject({ link: 'open', resumes: true });
  expect(after(hello(0), { kind: 'broken' }).resumes).toBe(false);
  expect(
    after(
      hello(0),
      { kind: 'asks' },
      lease('me', true),
      { kind: 'hands_back', expired: false },
      { kind: 'broken' },
    ).resumes,
  ).toBe(false);
});

test('an end is final, also where its screen is painted again', () => {
  const exit = message({ type: 'exit', id: 'x' } as Execution & { type: 'exit' });
  const ended = after(hello(0), { kind: 'asks' }, lease('me', true), exit);
  expect(ended).toMatchObject({ link: 'ended', typing: 'watching', holder: null });
  expect(step(ended, { kind: 'broken' }).link).toBe('ended');
  expect(step(ended, hello(0)).link).toBe('ended');
});

test('keys that were not sent are told until the person types again', () => {
  const lost = after(hello(0), { kind: 'asks' }, lease('me', true), { kind: 'broken' }, { kind: 'discards' });
  const back = [hello(0), { kind: 'asks' } as const, lease('me', true)].reduce(step, lost);
  expect(back).toMatchObject({ typing: 'typing', unsent: true });
  expect(step(back, { kind: 'types' }).unsent).toBe(false);
});
