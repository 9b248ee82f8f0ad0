/** Errors as texts for people. */
import { ConnectionError } from '../api/problem';
import { t } from './index.svelte';

/** What an error says in one sentence. That there was no answer is told in the page's words, not the browser's. */
export function problemText(error: unknown): string {
  if (error instanceof ConnectionError) return t('common.no_answer');
  return error instanceof Error ? error.message : String(error);
}
