/** Requests to the daemon: typed by its OpenAPI document, with the page's half of the credentials. */
import createClient from 'openapi-fetch';
import { BASE_PATH } from '../app/base-path';
import { currentPageKey, PAGE_KEY_HEADER } from './page-key';
import { ApiError, ConnectionError, isSignedOut, problemOf } from './problem';
import type { paths } from './schema';
import { observeServerDate } from './server-clock';

/** A daemon that sends nothing for so long, in milliseconds, is waited for no longer. It sends events every 15 s. */
const SILENCE_MS = 120_000;
/** The time between two looks at that, in milliseconds. */
const CHECK_MS = 5_000;

type Listener = () => void;
const signedOutListeners = new Set<Listener>();

/** Calls `listener` when the daemon says that nobody is signed in. Returns what ends that. */
export function onSignedOut(listener: Listener): () => void {
  signedOutListeners.add(listener);
  return () => signedOutListeners.delete(listener);
}

/**
 * `fetch` with the credentials of the page.
 *
 * @throws ConnectionError when there is no answer.
 */
export async function fetchWithKey(input: Request | string, init: RequestInit = {}): Promise<Response> {
  const request = new Request(input, { credentials: 'same-origin', cache: 'no-store', ...init });
  const key = currentPageKey();
  if (key !== null) request.headers.set(PAGE_KEY_HEADER, key);
  const asked = Date.now();
  try {
    const response = await fetch(request);
    noteReceived();
    observeServerDate(response.headers, asked);
    return response;
  } catch (error) {
    throw connectionError(error);
  }
}

/** The error of a request that got no answer, or not all of it; one that the page ended itself stays as it is. */
function connectionError(error: unknown): unknown {
  if (error instanceof DOMException && error.name === 'AbortError') return error;
  return new ConnectionError(error instanceof Error ? error.message : String(error));
}

let receivedAt = 0;

/** Notes that the daemon has sent something. */
export function noteReceived(): void {
  receivedAt = Date.now();
}

/**
 * As {@link fetchWithKey}; a daemon that was stopped, or a connection that is gone without a word, keeps nobody waiting.
 * One that sends other things may take its time: a stop waits for its grace.
 */
async function fetchUnlessSilent(request: Request): Promise<Response> {
  const silence = new AbortController();
  const asked = Date.now();
  const timer = setInterval(() => {
    if (Date.now() - Math.max(asked, receivedAt) < SILENCE_MS) return;
    silence.abort(new Error(`nothing received for ${SILENCE_MS} ms`));
  }, CHECK_MS);
  try {
    return await fetchWithKey(request, { signal: AbortSignal.any([request.signal, silence.signal]) });
  } finally {
    clearInterval(timer);
  }
}

/** The requests of REST: `api.GET('/api/v1/executions/{id}', { params: { path: { id } } })`. */
export const api = createClient<paths>({
  baseUrl: window.location.origin + BASE_PATH.replace(/\/$/, ''),
  fetch: fetchUnlessSilent,
  querySerializer: { array: { style: 'form', explode: true } },
});

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/**
 * The body of a successful answer.
 *
 * @throws ApiError with the problem document of any other.
 * @throws ConnectionError when the answer did not arrive, or ended early.
 */
export async function body<T>(answer: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await answer.catch((failure: unknown) => {
    // What `fetch` says when a body ends early.
    throw failure instanceof TypeError ? connectionError(failure) : failure;
  });
  if (response.ok) return data as T;
  throw apiError(response.status, error);
}

/** The error of a response; whoever follows the sign-in is told of a 401. */
export function apiError(status: number, content: unknown): ApiError {
  const error = new ApiError(problemOf(status, content));
  if (isSignedOut(error)) for (const listener of signedOutListeners) listener();
  return error;
}

/**
 * The response of a `GET` that is no JSON, such as a download.
 *
 * @throws ApiError, ConnectionError
 */
export async function fetchFile(path: string, init: RequestInit = {}): Promise<Response> {
  const response = await fetchWithKey(BASE_PATH + path.replace(/^\//, ''), init);
  if (response.ok) return response;
  throw apiError(response.status, await response.json().catch(() => null));
}
