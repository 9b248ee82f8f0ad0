/** What is known of a terminal session that is open, and who types into it; pure. */
import type { Execution, TerminalServerMessage, TermSize } from '../../api/types';

/** The connection to the session. */
export type Link = 'connecting' | 'open' | 'broken' | 'ended';

/** Whether this page types. `waiting`: the lease was asked for, and the answer is not here yet. */
export type Typing = 'watching' | 'waiting' | 'typing';

/** What the person is told once, in the frame. */
export type Notice =
  | { kind: 'taken_over'; holder: string }
  | { kind: 'lease_over' }
  | { kind: 'refused'; message: string }
  | { kind: 'gap'; bytes: number; lost: number };

export interface SessionState {
  link: Link;
  typing: Typing;
  /** Who types, as the session tells; `null` for nobody. */
  holder: string | null;
  size: TermSize;
  title: string;
  /** The offset after the output that arrived; `null` before the first connection. */
  offset: number | null;
  /** Whether the next binary frame paints the screen and is no output. */
  paints: boolean;
  /** Whether the page typed when the connection broke, and asks for the lease again. */
  resumes: boolean;
  notice: Notice | null;
  /** Whether keys that waited for the connection were not sent; until the person types again. */
  unsent: boolean;
  /** The execution at its end. */
  end: Execution | null;
}

export type SessionInput =
  | { kind: 'message'; message: TerminalServerMessage }
  | { kind: 'bytes'; length: number }
  /** `fromOffset`: output follows at once, without a painted screen. */
  | { kind: 'connects'; fromOffset: boolean }
  | { kind: 'broken' }
  | { kind: 'asks' }
  | { kind: 'hands_back'; expired: boolean }
  | { kind: 'discards' }
  | { kind: 'types' }
  | { kind: 'title'; title: string }
  | { kind: 'told' };

export const INITIAL: SessionState = {
  link: 'connecting',
  typing: 'watching',
  holder: null,
  size: { cols: 80, rows: 24 },
  title: '',
  offset: null,
  paints: false,
  resumes: false,
  notice: null,
  unsent: false,
  end: null,
};

export function step(state: SessionState, input: SessionInput): SessionState {
  switch (input.kind) {
    case 'message':
      return afterMessage(state, input.message);
    case 'bytes':
      return state.paints
        ? { ...state, paints: false }
        : { ...state, offset: (state.offset ?? 0) + input.length };
    case 'connects':
      return { ...state, paints: !input.fromOffset };
    case 'broken':
      return broken(state);
    case 'asks':
      return { ...state, typing: 'waiting', notice: null };
    case 'hands_back':
      return {
        ...state,
        typing: 'watching',
        resumes: false,
        notice: input.expired ? { kind: 'lease_over' } : null,
      };
    case 'discards':
      return { ...state, unsent: true };
    case 'types':
      return { ...state, unsent: false };
    case 'title':
      return { ...state, title: input.title };
    case 'told':
      return { ...state, notice: null };
  }
}

function broken(state: SessionState): SessionState {
  if (state.link === 'ended') return state;
  const resumes = state.resumes || state.typing !== 'watching';
  return { ...state, link: 'broken', typing: 'watching', holder: null, resumes };
}

function afterMessage(state: SessionState, message: TerminalServerMessage): SessionState {
  switch (message.type) {
    case 'hello':
      return {
        ...state,
        // One that has ended is attached to again to paint its screen.
        link: state.end === null ? 'open' : 'ended',
        size: message.size,
        title: message.title,
        offset: message.offset,
        holder: message.holder,
      };
    case 'lease':
      return afterLease(state, message.holder, message.yours);
    case 'resized':
      return { ...state, size: message.size };
    case 'gap': {
      const lost = message.lost_bytes ?? 0;
      return {
        ...state,
        offset: message.to,
        notice: { kind: 'gap', bytes: message.to - message.from, lost },
      };
    }
    case 'paint':
      return { ...state, offset: message.offset, paints: true };
    case 'refused':
      return {
        ...state,
        typing: message.take ? 'watching' : state.typing,
        resumes: message.take ? false : state.resumes,
        notice: { kind: 'refused', message: message.message },
      };
    case 'exit':
      return { ...state, link: 'ended', typing: 'watching', holder: null, resumes: false, end: message };
  }
}

function afterLease(state: SessionState, holder: string | null, yours: boolean): SessionState {
  if (yours) return { ...state, typing: 'typing', holder, resumes: false, notice: null };
  const lost = state.typing === 'typing';
  const typing = state.typing === 'waiting' ? 'waiting' : 'watching';
  const notice: Notice | null = lost && holder !== null ? { kind: 'taken_over', holder } : state.notice;
  return { ...state, typing, holder, notice };
}
