/** The four plots: how their values are written, and what belongs to them; pure. */
import type { Execution } from '../../api/types';
import { formatBytes, formatPercent } from '../../format/duration';
import type { Resource } from '../../model/usage';
import type { AlertEvent } from './alert-marks.svelte';

export const FORMATS: Record<Resource, (value: number) => string> = {
  cpu: formatPercent,
  memory: formatBytes,
  disk: (value) => `${formatBytes(value)}/s`,
  network: (value) => `${formatBytes(value)}/s`,
};

/** The least that the value axis of a plot spans, so that noise does not look like a mountain. */
export const LEAST: Record<Resource, number> = {
  cpu: 20,
  memory: 10_000_000,
  disk: 100_000,
  network: 100_000,
};

/** The plot in which an alert is shown. */
export function stripOf(event: AlertEvent): Resource {
  return event.alert === 'memory' || event.alert === 'disk' ? event.alert : 'cpu';
}

/** The limit of an execution on a resource, as its plot has it; `null` where there is none. */
export function limitOf(execution: Execution | undefined, resource: Resource): number | null {
  const limits = execution?.isolation.limits;
  if (resource === 'cpu' && limits?.cpu_millis !== undefined) return limits.cpu_millis / 10;
  if (resource === 'memory') return limits?.memory_bytes ?? null;
  return null;
}
