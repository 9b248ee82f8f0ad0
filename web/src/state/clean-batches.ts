/** Removes many executions by several requests; pure but for the requests. */
import type { CleanOutcome } from '../api/types';
import { problemText } from '../i18n/problem-text';

/** Ids of one request to clean. */
export const CLEAN_BATCH = 500;

/**
 * What became of each, by the ids given. Where a request after the first fails, those that it and the requests after
 * it are about have failed for that reason; what was done before counts.
 *
 * @throws what `clean` throws at the first request: nothing is known to be done then.
 */
export async function cleanInBatches(
  ids: readonly string[],
  clean: (pids: string[]) => Promise<CleanOutcome>,
): Promise<CleanOutcome> {
  const all: CleanOutcome = { success: [], failed: [], running: [], not_found: [] };
  for (let start = 0; start < ids.length; start += CLEAN_BATCH) {
    try {
      const answer = await clean(ids.slice(start, start + CLEAN_BATCH));
      for (const kind of ['success', 'running', 'not_found'] as const) all[kind].push(...answer[kind]);
      all.failed.push(...answer.failed);
    } catch (error) {
      if (start === 0) throw error;
      const reason = problemText(error);
      all.failed.push(...ids.slice(start).map((pid) => ({ pid, reason })));
      break;
    }
  }
  return all;
}
