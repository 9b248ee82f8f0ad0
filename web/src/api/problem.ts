/** Errors of requests, as the pages tell them. */
import type { Problem } from './types';

/** A request that the daemon refused or could not carry out, with its problem document. */
export class ApiError extends Error {
  override name = 'ApiError';
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.message);
    this.problem = problem;
  }
}

/** A request that got no answer: the daemon is away, or the connection is. */
export class ConnectionError extends Error {
  override name = 'ConnectionError';
}

/** The problem in a response that is not successful, whatever its body is. */
export function problemOf(status: number, body: unknown): Problem {
  if (typeof body === 'object' && body !== null && 'code' in body && 'message' in body) {
    return body as Problem;
  }
  return {
    type: 'about:blank',
    title: 'Error',
    status,
    code: 'web_interface_error',
    message: `the server answered with status ${status}`,
    retryable: status >= 500,
  };
}

/** Whether the error says that the caller is not signed in any more. */
export function isSignedOut(error: unknown): boolean {
  return error instanceof ApiError && error.problem.status === 401;
}

/** An error without what a new look at its cause has outdated: that there was no answer. What the daemon said stays. */
export function withoutSilence(error: unknown): unknown {
  return error instanceof ConnectionError ? null : error;
}
