/** Everything that is known of an execution as a process, as names and values. */
import { serverNow } from '../../../api/server-clock';
import type { Execution } from '../../../api/types';
import { formatBytes, formatDuration } from '../../../format/duration';
import { dayOf, formatClock, formatFull, formatListTime, type TimeStyle } from '../../../format/time';
import { visibleLine, visiblePath, visibleText } from '../../../format/visible-text';
import { t } from '../../../i18n/index.svelte';
import { exitText } from '../../../model/display-state';

export interface Fact {
  name: string;
  value: string;
  /** Said beside it. */
  note?: string;
  /** Said on hover. */
  title?: string;
  /** Whether it is an id, a path or the like. */
  isCode: boolean;
}

type Value = string | null | undefined | false;

/** `processes`: how many there are in its tree, where that is known. */
export function processFacts(execution: Execution, processes: number | undefined, style: TimeStyle): Fact[] {
  const facts: Fact[] = [];
  const add = (name: string, value: Value, options: { isCode?: boolean; note?: string | undefined } = {}) => {
    if (!value) return;
    const { isCode = true, note } = options;
    facts.push({ name, value, isCode, ...(note ? { note } : {}) });
  };
  const addTime = (name: string, at: string | null) => {
    if (at === null) return;
    const date = new Date(at);
    facts.push({ name, value: preciseTime(date, style), isCode: true, title: formatFull(date, style) });
  };
  const number = (value: number) => value.toLocaleString(style.language);
  const others = (processes ?? 1) - 1;
  // Between two attempts there is no process.
  const pid = execution.phase === 'starting' ? null : execution.os_pid;
  add('PID', pid?.toString(), {
    note: execution.phase === 'finished' || others < 1 ? undefined : t('process.and_more', { n: others }),
  });
  if (execution.start_time === null) addTime(t('process.accepted_at'), execution.created_at);
  addTime(t('process.started_at'), execution.start_time);
  addTime(t('process.ended_at'), execution.end_time);
  add(t('process.duration'), execution.end_time !== null && formatDuration(execution.duration * 1000));
  add(t('process.exit'), exitText(execution));
  add(t('process.stop_reason'), visibleText(execution.stop_reason ?? ''), { isCode: false });
  add(t('process.error'), visibleText(execution.error_message ?? ''), { isCode: false });
  add(t('process.directory'), visiblePath(execution.directory));
  add(t('process.timeout'), execution.timeout !== null && formatDuration(execution.timeout * 1000), {
    note: t('process.whole_tree'),
  });
  add(t('process.session'), visibleText(execution.session ?? ''));
  add(t('process.project'), visibleLine(execution.project ?? ''));
  add(t('process.owner'), visibleText(execution.principal));
  add(t('process.description'), visibleText(execution.description), { isCode: false });
  add(t('process.labels'), visibleText(execution.labels.join(', ')));
  add(t('process.attempts'), execution.attempt > 1 && number(execution.attempt));
  add(t('process.waited'), execution.queued && formatDuration(execution.queued.waited * 1000));
  add(t('process.terminal'), execution.terminal && `${execution.terminal.cols} × ${execution.terminal.rows}`);
  add(t('process.output'), formatBytes(execution.output_bytes), {
    note:
      execution.trimmed_bytes > 0
        ? t('process.not_kept', { size: formatBytes(execution.trimmed_bytes) })
        : undefined,
  });
  add(t('process.encoding'), execution.encoding);
  add(t('process.outlives'), execution.keep && t('process.yes'), { isCode: false });
  add(t('process.leftovers'), execution.leftovers > 0 && number(execution.leftovers));
  add(t('process.survivors'), execution.survivors.join(', '));
  add(t('process.cpu_time'), cpuTime(execution));
  add(
    t('process.largest_process'),
    execution.usage.max_rss_bytes ? formatBytes(execution.usage.max_rss_bytes) : null,
  );
  add(t('process.id'), execution.uuid);
  return facts;
}

/** The clock with milliseconds; before it the day, where it is not today. */
function preciseTime(at: Date, style: TimeStyle): string {
  const clock = formatClock(at, style, true);
  const now = new Date(serverNow());
  const isToday = formatListTime(at, now, style) === formatClock(at, style);
  return isToday ? clock : `${dayOf(at, style)}, ${clock}`;
}

function cpuTime({ usage }: Execution): string | null {
  const micros = (usage.user_us ?? 0) + (usage.system_us ?? 0);
  return micros > 0 ? formatDuration(micros / 1000) : null;
}
