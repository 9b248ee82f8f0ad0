/** What a person does to executions, wherever they are shown. What answers say is taken into the list at once. */
import { api, body } from '../api/client';
import type { CleanOutcome, Execution, StartRequest } from '../api/types';
import { cleanInBatches } from './clean-batches';
import { acceptExecution, executions, forgetExecutions } from './executions.svelte';

/** Starts a command. */
export async function startExecution(request: StartRequest): Promise<Execution> {
  return accept(api.POST('/api/v1/executions', { body: request }));
}

/** Stops one; done when it has ended. `force`: without time to end by itself. */
export async function stopExecution(id: string, force = false): Promise<Execution> {
  return accept(api.POST('/api/v1/executions/{id}/stop', { params: { path: { id } }, body: { force } }));
}

export async function pauseExecution(id: string): Promise<Execution> {
  return accept(api.POST('/api/v1/executions/{id}/pause', { params: { path: { id } } }));
}

export async function resumeExecution(id: string): Promise<Execution> {
  return accept(api.POST('/api/v1/executions/{id}/resume', { params: { path: { id } } }));
}

/** Starts the same command again; the answer is the new execution. */
export async function rerunExecution(id: string): Promise<Execution> {
  return accept(api.POST('/api/v1/executions/{id}/again', { params: { path: { id } }, body: {} }));
}

/**
 * Removes those that have ended, with their output; says what became of each, by the ids given. Of several requests,
 * those after the first that have no answer are told as failures.
 */
export function cleanExecutions(ids: readonly string[]): Promise<CleanOutcome> {
  return cleanInBatches(ids, async (pids) => {
    const answer = await body(api.POST('/api/process/clean_selected', { body: { pids }, params: {} }));
    forgetExecutions([...answer.success, ...answer.not_found].map(({ pid }) => pid));
    return answer;
  });
}

/** Removes all that have ended, with their output. */
export async function cleanAllExecutions(): Promise<{ count: number; failed: CleanOutcome['failed'] }> {
  const answer = await body(api.POST('/api/process/clean_all', { params: {} }));
  const kept = new Set((answer.failed ?? []).map(({ pid }) => pid));
  const ended = executions.list.filter(({ phase, id }) => phase === 'finished' && !kept.has(id));
  forgetExecutions(ended.map(({ uuid }) => uuid));
  executions.reload();
  return { count: answer.count, failed: answer.failed ?? [] };
}

async function accept(answer: Parameters<typeof body<Execution>>[0]): Promise<Execution> {
  const execution = await body(answer);
  acceptExecution(execution);
  return execution;
}
