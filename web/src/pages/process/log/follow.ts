/** Whether the view follows the end; pure. */

export type Follow =
  | { kind: 'following' }
  /** It stands still. `seen`: how many lines there were when it stopped. */
  | { kind: 'held'; seen: number };

export type FollowInput =
  /** The person scrolled up, selected text, or went to a line, a match or an error. */
  | { kind: 'left'; ended: number }
  /** The last line came into view by a scroll downwards. */
  | { kind: 'reached_end' }
  /** By the key, the button or End. */
  | { kind: 'asked' }
  | { kind: 'toggled'; ended: number };

export function step(state: Follow, input: FollowInput): Follow {
  switch (input.kind) {
    case 'left':
      return state.kind === 'held' ? state : { kind: 'held', seen: input.ended };
    case 'toggled':
      return state.kind === 'held' ? { kind: 'following' } : { kind: 'held', seen: input.ended };
    case 'reached_end':
    case 'asked':
      return state.kind === 'following' ? state : { kind: 'following' };
  }
}

/** The count on the button is not told beyond this. */
export const NEW_LIMIT = 9_999;

/** How many lines have come since it stands still. */
export function newLines(state: Follow, ended: number): number {
  return state.kind === 'held' ? Math.max(0, ended - state.seen) : 0;
}
