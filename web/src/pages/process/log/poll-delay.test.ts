import { expect, it } from 'vitest';
import { ACTIVE_MS, FIRST_POLL, HIDDEN_MS, nextPoll, type PollState, QUIET_MS } from './poll-delay';

it('asks often while there is output, and less and less often in silence', () => {
  let state: PollState = nextPoll(FIRST_POLL, 'more', false);
  expect(state.delay).toBe(ACTIVE_MS);
  for (let round = 0; round < 9; round += 1) state = nextPoll(state, 'same', false);
  expect(state.delay).toBe(QUIET_MS);
  expect(nextPoll(state, 'more', false).delay).toBe(ACTIVE_MS);
  expect(nextPoll(state, 'more', true).delay).toBe(HIDDEN_MS);
});

it('tries again after a failure, later each time', () => {
  const delays = [];
  let state = FIRST_POLL;
  for (let round = 0; round < 6; round += 1) {
    state = nextPoll(state, 'failed', false);
    delays.push(state.delay);
  }
  expect(delays).toEqual([250, 1_000, 2_000, 5_000, 5_000, 5_000]);
  expect(nextPoll(state, 'same', false).failures).toBe(0);
});
