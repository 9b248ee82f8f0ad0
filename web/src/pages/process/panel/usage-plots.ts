/** The plots of what a process uses. */
import type { Execution } from '../../../api/types';
import { formatBytes, formatPercent } from '../../../format/duration';
import { t } from '../../../i18n/index.svelte';
import type { Resource, UsageSeries } from '../../../model/usage';
import type { PlotColour, PlotLimit, PlotSeries } from '../../../ui/plot';

export interface UsagePlot {
  resource: Resource;
  title: string;
  series: PlotSeries[];
  limits: PlotLimit[];
  format: (value: number) => string;
  now: number | null;
  peak: number;
}

const COLOURS: Record<Resource, PlotColour> = {
  cpu: 'running',
  memory: 'accent',
  disk: 'ready',
  network: 'stopping',
};

/** A plot for each of these resources of which something was measured. */
export function usagePlots(
  series: UsageSeries,
  limits: Execution['isolation']['limits'],
  resources: readonly Resource[],
): UsagePlot[] {
  const titles: Record<Resource, string> = {
    cpu: t('process.processor'),
    memory: t('process.memory'),
    disk: t('process.storage'),
    network: t('process.network'),
  };
  return resources
    .filter((resource) => series.values[resource].some((value) => value !== null))
    .map((resource) => {
      const values = series.values[resource];
      return {
        resource,
        title: titles[resource],
        series: [{ label: titles[resource], values, colour: COLOURS[resource], filled: true }],
        limits: limitsOf(resource, limits),
        format: formatOf(resource),
        now: values.findLast((value) => value !== null) ?? null,
        peak: values.reduce<number>((most, value) => Math.max(most, value ?? 0), 0),
      };
    });
}

function limitsOf(resource: Resource, limits: Execution['isolation']['limits']): PlotLimit[] {
  const label = (text: string) => t('process.limit_is', { limit: text });
  if (resource === 'memory' && limits.memory_bytes !== undefined) {
    return [{ value: limits.memory_bytes, label: label(formatBytes(limits.memory_bytes)) }];
  }
  if (resource === 'cpu' && limits.cpu_millis !== undefined) {
    return [{ value: limits.cpu_millis / 10, label: label(formatPercent(limits.cpu_millis / 10)) }];
  }
  return [];
}

function formatOf(resource: Resource): (value: number) => string {
  if (resource === 'cpu') return formatPercent;
  if (resource === 'memory') return formatBytes;
  return (value) => `${formatBytes(value)}/s`;
}
