/** How soon it is asked again whether there is more output; pure. */

/** While there is some, in milliseconds. */
export const ACTIVE_MS = 100;
/** While there is none, at most; a growing part of the silence. */
export const QUIET_MS = 500;
/** While nobody sees it. */
export const HIDDEN_MS = 5_000;
/** While the daemon does not answer. */
const RETRY_MS = [250, 1_000, 2_000, 5_000];

export interface PollState {
  delay: number;
  failures: number;
}

export const FIRST_POLL: PollState = { delay: ACTIVE_MS, failures: 0 };

export type PollResult = 'more' | 'same' | 'failed';

export function nextPoll(state: PollState, result: PollResult, hidden: boolean): PollState {
  if (result === 'failed') {
    const delay = RETRY_MS[Math.min(state.failures, RETRY_MS.length - 1)] ?? HIDDEN_MS;
    return { delay, failures: state.failures + 1 };
  }
  if (hidden) return { delay: HIDDEN_MS, failures: 0 };
  if (result === 'more') return { delay: ACTIVE_MS, failures: 0 };
  return { delay: Math.min(QUIET_MS, Math.max(ACTIVE_MS, state.delay) * 1.5), failures: 0 };
}
