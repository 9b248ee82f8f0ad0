/** How an execution is shown: one state, told by shape, word and colour. */
import type { Execution, HistoryEntry } from '../api/types';

export type DisplayState =
  | 'starting'
  | 'running'
  | 'listening'
  | 'responding'
  | 'ready'
  | 'degraded'
  | 'stopping'
  | 'waiting'
  | 'paused'
  | 'completed'
  | 'failed'
  | 'crash_looping'
  | 'terminated'
  | 'timed_out'
  | 'spawn_failed'
  | 'out_of_memory'
  | 'lost';

/** The colour of a state; `quiet` is that of secondary text. */
export type Tone = 'starting' | 'running' | 'ready' | 'stopping' | 'waiting' | 'failed' | 'quiet';

const TONES: Record<DisplayState, Tone> = {
  starting: 'starting',
  running: 'running',
  listening: 'running',
  responding: 'running',
  ready: 'ready',
  degraded: 'stopping',
  stopping: 'stopping',
  waiting: 'waiting',
  paused: 'quiet',
  completed: 'quiet',
  failed: 'failed',
  crash_looping: 'failed',
  terminated: 'quiet',
  timed_out: 'quiet',
  spawn_failed: 'failed',
  out_of_memory: 'failed',
  lost: 'failed',
};

export function toneOf(state: DisplayState): Tone {
  return TONES[state];
}

const SERVICE_STATES: Record<string, DisplayState> = {
  pending: 'starting',
  starting: 'starting',
  listening: 'listening',
  responding: 'responding',
  ready: 'ready',
  running: 'running',
  degraded: 'degraded',
  stopping: 'stopping',
  crash_looping: 'crash_looping',
};

/** The state of an execution. `waiting`: a question of it is open. */
export function displayState(execution: Execution, waiting = false): DisplayState {
  if (execution.phase === 'finished') return endState(execution.status, execution.cause?.kind);
  if (execution.phase === 'stopping') return 'stopping';
  if (waiting) return 'waiting';
  if (execution.paused) return 'paused';
  const service = execution.service && SERVICE_STATES[execution.service.status];
  if (service) return service;
  return execution.phase === 'starting' ? 'starting' : 'running';
}

/** The state of a service by its status, for one that has no execution. */
export function serviceState(status: string): DisplayState {
  if (status === 'stopped') return 'terminated';
  if (status === 'failed') return 'failed';
  return SERVICE_STATES[status] ?? 'terminated';
}

/** What the history calls the ends that have a name of their own here. */
const HISTORY_STATES: Record<string, DisplayState> = {
  running: 'running',
  succeeded: 'completed',
  timed_out: 'timed_out',
  stopped: 'terminated',
  lost: 'lost',
};

/** The state of a row of the history. */
export function historyState(entry: Pick<HistoryEntry, 'status' | 'cause'>): DisplayState {
  return HISTORY_STATES[entry.status] ?? endState(entry.status, entry.cause);
}

function endState(status: string, cause: string | undefined): DisplayState {
  if (cause === 'timed_out') return 'timed_out';
  if (cause === 'out_of_memory') return 'out_of_memory';
  if (cause === 'spawn_failed') return 'spawn_failed';
  if (cause === 'lost') return 'lost';
  if (status === 'completed') return 'completed';
  if (status === 'terminated') return 'terminated';
  return 'failed';
}

export function isActive(execution: Execution): boolean {
  return execution.phase !== 'finished';
}

/** Where an execution stands in the order of attention: a question, a new failure, activity, the rest. */
export function attentionRank(state: DisplayState, isNew: boolean): number {
  if (state === 'waiting') return 0;
  const failed = toneOf(state) === 'failed';
  if (state === 'crash_looping' || (failed && isNew)) return 1;
  return failed || isEnded(state) ? 3 : 2;
}

export function isEnded(state: DisplayState): boolean {
  const ended: DisplayState[] = [
    'completed',
    'failed',
    'terminated',
    'timed_out',
    'spawn_failed',
    'out_of_memory',
    'lost',
  ];
  return ended.includes(state);
}

/** The signal of an end that nobody asked for, or the exit code; `null` where there is neither. */
export function exitText(execution: Execution): string | null {
  if (execution.phase !== 'finished') return null;
  if (execution.signal)
    return execution.signal.startsWith('SIG') ? execution.signal : `SIG${execution.signal}`;
  return execution.exit_code === null ? null : String(execution.exit_code);
}
