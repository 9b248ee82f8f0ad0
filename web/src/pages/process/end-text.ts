/** How an execution ended, in words. */
import type { Execution } from '../../api/types';
import { formatDuration } from '../../format/duration';
import { type MessageKey, t } from '../../i18n/index.svelte';
import { exitText } from '../../model/display-state';

type Ended = Pick<
  Execution,
  'cause' | 'duration' | 'exit_code' | 'signal' | 'phase' | 'end_time' | 'start_time'
>;

const KEYS: Record<NonNullable<Execution['cause']>['kind'], MessageKey> = {
  exited: 'process.end_exited',
  signaled: 'process.end_signaled',
  stopped: 'process.end_stopped',
  timed_out: 'process.end_timed_out',
  out_of_memory: 'process.end_out_of_memory',
  spawn_failed: 'process.end_spawn_failed',
  lost: 'process.end_lost',
};

/** `Exited 1 after 1m 26s`. */
export function endText(execution: Ended): string {
  const key = KEYS[execution.cause?.kind ?? 'exited'];
  const code = exitText(execution as Execution) ?? '–';
  return t(key, { code, time: formatDuration(execution.duration * 1000) });
}
