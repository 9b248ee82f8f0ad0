/** What happened, in words of the language. */
import type { LedgerEvent } from '../../../api/types';
import { formatBytes, formatDuration, formatPercent } from '../../../format/duration';
import { type MessageKey, t } from '../../../i18n/index.svelte';
import type { Parameters } from '../../../i18n/translate';
import { signalName } from '../signals';

export type EventTone = 'plain' | 'good' | 'notice' | 'bad';

export interface EventWords {
  text: string;
  tone: EventTone;
}

type Name = LedgerEvent['event'];
type EventOf<N extends Name> = Extract<LedgerEvent, { event: N }>;
type Writers = { [N in Name]: (event: EventOf<N>) => EventWords };

function words(key: MessageKey, parameters: Parameters = {}, tone: EventTone = 'plain'): EventWords {
  return { text: t(key, parameters), tone };
}

export function eventWords(event: LedgerEvent): EventWords {
  const write = WRITERS[event.event] as ((event: LedgerEvent) => EventWords) | undefined;
  // A newer daemon may tell of what this page does not know.
  return write?.(event) ?? { text: event.event, tone: 'plain' };
}

const WRITERS: Writers = {
  created: ({ request, missing = [] }) => {
    const rule = textOf(request?.['policy']);
    if (missing.length > 0) return words('process.event_created_without', { n: missing.length }, 'notice');
    return rule
      ? words('process.event_allowed', { rule })
      : words('process.event_created', { level: textOf(request?.['level']) });
  },
  refused: ({ message }) => words('process.event_refused', { message }, 'bad'),
  started: ({ attempt, pid }) =>
    attempt > 1
      ? words('process.event_started_again', { attempt, pid: String(pid) })
      : words('process.event_started', { pid: String(pid) }),
  spawn_failed: ({ message }) => words('process.event_spawn_failed', { message }, 'bad'),
  ports: ({ ports }) =>
    ports.length === 0
      ? words('process.event_no_ports')
      : words('process.event_ports', { ports: ports.map((port) => port.address).join(', ') }),
  stage: ({ sign }) => ({ text: sign.detail, tone: 'plain' }),
  ready: ({ evidence }) => words('process.event_ready', { evidence }, 'good'),
  health: ({ ok, detail }) =>
    ok
      ? words('process.event_healthy', { detail }, 'good')
      : words('process.event_unhealthy', { detail }, 'bad'),
  detached: ({ status }) => words('process.event_detached', { status: waitText(status) }),
  prompt_detected: ({ secret, text }) =>
    secret
      ? words('process.event_asks_secret', {}, 'notice')
      : words('process.event_asks', { text: text.trim() }, 'notice'),
  prompt_answered: ({ by }) => words('process.event_answered', { by }),
  prompt_gone: () => words('process.event_prompt_gone'),
  interaction: ({ state, request }) => interactionWords(state, textOf(request?.['message'])),
  context: ({ state, reason }) => words('process.event_context', { state, reason: reason ?? '' }),
  requested: ({ action, by }) => requestedWords(action, by),
  input: ({ by, len }) => words('process.event_input', { by, n: len }),
  resized: ({ size }) => words('process.event_resized', { cols: size.cols, rows: size.rows }),
  paused: ({ by }) => words('process.event_paused', { by }),
  resumed: ({ by }) => words('process.event_resumed', { by }),
  lease_taken: ({ by }) => (by ? words('process.event_lease', { by }) : words('process.event_lease_ended')),
  sampled: () => words('process.event_sampled'),
  workspace: ({ by, fate }) =>
    fate === 'committed'
      ? words('process.event_committed', { by })
      : words('process.event_discarded', { by }),
  limit_hit: ({ limit }) => words('process.event_limit', { limit: t(`process.limit_${limit}`) }, 'bad'),
  alert: ({ alert, state, threshold, value }) => {
    const texts = {
      what: t(`process.alert_${alert}`),
      threshold: alertValue(alert, threshold),
      value: alertValue(alert, value),
    };
    return state === 'raised'
      ? words('process.event_alert', texts, 'notice')
      : words('process.event_alert_over', texts, 'plain');
  },
  autorun: ({ report }) =>
    words('process.event_autorun', { n: (report.found?.length ?? 0) + (report.more ?? 0) }, 'notice'),
  degraded: ({ detail }) => words('process.event_degraded', { detail }, 'bad'),
  stopping: ({ order }) => stopWords(order),
  exited: ({ status, out_of_memory }) =>
    out_of_memory
      ? words('process.event_out_of_memory', {}, 'bad')
      : { text: waitText(status), tone: 'code' in status && status.code === 0 ? 'plain' : 'bad' },
  restarting: ({ attempt, reason }) => words('process.event_restarting', { attempt, reason }, 'notice'),
  backoff: ({ attempt }) => words('process.event_backoff', { attempt }, 'notice'),
  adopted: () => words('process.event_adopted'),
  trimmed: ({ from, to, reason }) =>
    words(`process.event_trimmed_${reason}`, { size: formatBytes(to - from) }, 'notice'),
  finished: ({ ending }) => endWords(ending),
};

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function waitText(status: EventOf<'exited'>['status']): string {
  return 'code' in status
    ? t('process.event_exited', { code: String(status.code) })
    : t('process.event_signaled', { signal: signalName(status.signal) });
}

function interactionWords(state: EventOf<'interaction'>['state'], message: string): EventWords {
  switch (state.status) {
    case 'open':
      return words('process.event_question', { message }, 'notice');
    case 'answered':
      return words('process.event_answered', { by: state.by });
    case 'cancelled':
      return words('process.event_question_cancelled');
    case 'timed_out':
      return words(
        state.took_default ? 'process.event_question_default' : 'process.event_question_timed_out',
      );
  }
}

function requestedWords(action: EventOf<'requested'>['action'], by: string): EventWords {
  switch (action.kind) {
    case 'signal':
      return words('process.event_signal_sent', { by, signal: signalName(action.signal) }, 'notice');
    case 'clear_output':
      return words('process.event_cleared_by', { by, size: formatBytes(action.bytes) }, 'notice');
    case 'remove':
      return words('process.event_removed_by', { by }, 'notice');
  }
}

function alertValue(alert: EventOf<'alert'>['alert'], value: number): string {
  if (alert === 'cpu') return formatPercent(value);
  return alert === 'memory' || alert === 'disk' ? formatBytes(value) : formatDuration(value);
}

function stopWords(order: EventOf<'stopping'>['order']): EventWords {
  switch (order.kind) {
    case 'requested': {
      const parameters = { by: order.by, reason: order.reason ?? '' };
      if (order.reason)
        return words(order.force ? 'process.event_force_reason' : 'process.event_stop_reason', parameters);
      return words(order.force ? 'process.event_force' : 'process.event_stop', parameters);
    }
    case 'timed_out':
      return words(
        order.clock === 'idle' ? 'process.event_idle_timeout' : 'process.event_timeout',
        {},
        'bad',
      );
    case 'session_ended':
      return words('process.event_session_ended');
    case 'shutdown':
      return words('process.event_shutdown');
    case 'cancelled':
      return words('process.event_cancelled');
    case 'limit_hit':
      return words('process.event_limit', { limit: t(`process.limit_${order.limit}`) }, 'bad');
  }
}

function endWords({ cause, code, signal }: EventOf<'finished'>['ending']): EventWords {
  switch (cause.kind) {
    case 'exited':
      return words('process.event_ended_exit', { code: String(code ?? 0) }, code === 0 ? 'good' : 'bad');
    case 'signaled':
      return words('process.event_ended_signal', { signal: signalName(signal ?? 0) }, 'bad');
    case 'stopped':
      return words('process.event_ended_stopped');
    case 'timed_out':
      return words('process.event_ended_timed_out', {}, 'bad');
    case 'out_of_memory':
      return words('process.event_out_of_memory', {}, 'bad');
    case 'spawn_failed':
      return words('process.event_spawn_failed', { message: cause.message }, 'bad');
    case 'lost':
      return words(`process.event_lost_${cause.reason}`, {}, 'bad');
  }
}
