/** What is known of the connection to the daemon; pure. */

export type ConnectionStatus =
  /** The page was just opened. */
  | { kind: 'connecting' }
  /** Events arrive. `caughtUp` counts those that came first after an interruption, while that is told. */
  | { kind: 'live'; caughtUp: number | null }
  /** It ended a moment ago. */
  | { kind: 'reconnecting'; since: number }
  /** It has been away for so long that the person is told. */
  | { kind: 'lost'; since: number; nextTry: number };

export type ConnectionInput =
  | { kind: 'opened'; at: number }
  | { kind: 'closed'; at: number; nextTry: number }
  | { kind: 'event' }
  | { kind: 'tick'; at: number };

/** An interruption that is longer is told, in milliseconds. */
export const TOLD_AFTER_MS = 5_000;
/** How long it is told that the connection is back. */
export const TOLD_FOR_MS = 4_000;

export interface ConnectionState {
  status: ConnectionStatus;
  /** When the connection came back after an interruption that was told. */
  backAt: number | null;
}

export const INITIAL: ConnectionState = { status: { kind: 'connecting' }, backAt: null };

export function step(state: ConnectionState, input: ConnectionInput): ConnectionState {
  switch (input.kind) {
    case 'opened': {
      const wasLost = state.status.kind === 'lost';
      return {
        status: { kind: 'live', caughtUp: wasLost ? 0 : null },
        backAt: wasLost ? input.at : null,
      };
    }
    case 'closed':
      return { status: closed(state.status, input.at, input.nextTry), backAt: null };
    case 'event':
      return counted(state);
    case 'tick':
      return ticked(state, input.at);
  }
}

function closed(status: ConnectionStatus, at: number, nextTry: number): ConnectionStatus {
  const since = status.kind === 'reconnecting' || status.kind === 'lost' ? status.since : at;
  return at - since >= TOLD_AFTER_MS ? { kind: 'lost', since, nextTry } : { kind: 'reconnecting', since };
}

function counted(state: ConnectionState): ConnectionState {
  if (state.status.kind !== 'live' || state.status.caughtUp === null) return state;
  return { ...state, status: { kind: 'live', caughtUp: state.status.caughtUp + 1 } };
}

function ticked(state: ConnectionState, at: number): ConnectionState {
  const { status } = state;
  if (status.kind === 'reconnecting' && at - status.since >= TOLD_AFTER_MS) {
    return { status: { kind: 'lost', since: status.since, nextTry: at }, backAt: null };
  }
  if (status.kind === 'live' && state.backAt !== null && at - state.backAt >= TOLD_FOR_MS) {
    return { status: { kind: 'live', caughtUp: null }, backAt: null };
  }
  return state;
}
