/** The one sentence that says why a service is as it is; pure. */
import type { Service } from '../../api/types';
import { formatDuration } from '../../format/duration';

export type Evidence =
  /** It is ready, by what was seen so long after its start. */
  | { kind: 'ready_after'; time: string; seen: string }
  | { kind: 'seen'; seen: string }
  | { kind: 'nothing_to_see' }
  | { kind: 'waits_for'; what: string }
  /** It is ill, by what its check saw. */
  | { kind: 'unhealthy'; seen: string }
  /** Between two attempts. */
  | { kind: 'starts_again'; until: string; end: string }
  | { kind: 'ended'; end: string; time: string }
  | { kind: 'never_ran' };

export function evidenceOf(service: Service): Evidence {
  const { execution } = service;
  if (!execution) return { kind: 'never_ran' };
  const state = execution.service;
  if (!service.living) {
    const end = execution.error_message ?? state?.last_end ?? execution.status;
    return { kind: 'ended', end, time: formatDuration(execution.duration * 1000) };
  }
  if (state?.backoff_until) {
    return { kind: 'starts_again', until: state.backoff_until, end: state.last_end ?? '' };
  }
  if (service.status === 'degraded') {
    return { kind: 'unhealthy', seen: state?.health?.detail ?? state?.warnings[0] ?? '' };
  }
  const waits = service.waits_for ?? state?.waits_for;
  if (waits) return { kind: 'waits_for', what: waits };
  return readyEvidence(service);
}

function readyEvidence(service: Service): Evidence {
  const state = service.execution?.service;
  if (!state?.evidence) return { kind: 'nothing_to_see' };
  const after = readyAfter(service);
  return after === null
    ? { kind: 'seen', seen: state.evidence }
    : { kind: 'ready_after', time: formatDuration(after), seen: state.evidence };
}

/** From its start to the last thing that was seen of it, in milliseconds; `null` after a restart. */
function readyAfter(service: Service): number | null {
  const execution = service.execution;
  const last = execution?.service?.signs.at(-1);
  if (!execution?.start_time || !last || execution.attempt > 1 || service.status !== 'ready') return null;
  const after = Date.parse(last.at) - Date.parse(execution.start_time);
  return after >= 0 ? after : null;
}
