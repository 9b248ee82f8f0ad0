/** Starts a template. Where a person must agree first, the question of the daemon is given back. */
import { api, body } from '../../api/client';
import { ApiError } from '../../api/problem';
import type { Interaction } from '../../api/types';
import { readInteraction } from '../../state/interactions.svelte';

export type RunOutcome = { kind: 'started'; id: string } | { kind: 'asked'; question: Interaction };

export interface RunRequest {
  template: string;
  /** An absolute directory: where it runs, and the project it belongs to. */
  directory: string;
  parameters: Record<string, unknown>;
  /** Whether it gets a terminal, so that it can ask. */
  interactive: boolean;
}

/** @throws ApiError, ConnectionError */
export async function runTemplate(request: RunRequest): Promise<RunOutcome> {
  const { template, directory, parameters, interactive } = request;
  const params = { path: { id: directory } };
  const content = { template_id: template, parameters, interactive, cwd: directory };
  try {
    const started = await body(api.POST('/api/v1/projects/{id}/execute', { params, body: content }));
    return { kind: 'started', id: started.task_id };
  } catch (error) {
    const approval = error instanceof ApiError ? error.problem.approval : undefined;
    if (approval === undefined) throw error;
    return { kind: 'asked', question: await readInteraction(approval) };
  }
}
