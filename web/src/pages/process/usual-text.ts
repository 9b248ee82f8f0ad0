/** How a command usually ends, in one phrase. */
import type { Execution } from '../../api/types';
import { formatDuration } from '../../format/duration';
import { t } from '../../i18n/index.svelte';

/** Fewer runs say nothing. */
const RUNS = 3;

/** `normally 4m 02s, p90 6m 10s, fails 1 in 20`; `null` where too little is known. */
export function usualText(usual: Execution['usual']): string | null {
  if (!usual || usual.runs < RUNS) return null;
  const times = { median: formatDuration(usual.median_ms), p90: formatDuration(usual.p90_ms) };
  const share = failureShare(usual.failures, usual.runs);
  return share === null
    ? t('process.usual', times)
    : t('process.usual_fails', { ...times, failures: share[0], runs: share[1] });
}

/** The share of failures as `1 in n`, or as it is where that would not be near; `null` where none failed. */
export function failureShare(failures: number, runs: number): [number, number] | null {
  if (failures <= 0) return null;
  const of = runs / failures;
  return Math.abs(of - Math.round(of)) < 0.2 && of >= 1.8 ? [1, Math.round(of)] : [failures, runs];
}
