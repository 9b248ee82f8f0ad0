/** Signing in and out. */
import { BASE_PATH } from '../app/base-path';
import { apiError, fetchWithKey } from './client';
import { storePageKey } from './page-key';

export interface WebSession {
  /** Whose executions are seen. */
  principal?: string;
  /** The scopes of the token. */
  scopes?: string[];
  /** When the token ends; absent for one that does not. */
  expires?: string;
  /** Whether the daemon asks for a token at all. */
  token_needed: boolean;
}

const ADDRESS = `${BASE_PATH}api/v1/web/session`;

/** Who is signed in; `null` for nobody. */
export async function currentSession(): Promise<WebSession | null> {
  const response = await fetchWithKey(ADDRESS);
  if (response.status === 401) return null;
  if (!response.ok) throw apiError(response.status, await response.json().catch(() => null));
  return { token_needed: true, ...(await response.json()) };
}

/** Signs in with a token, or with the code of a link. */
export async function signIn(credential: { token: string } | { code: string }): Promise<void> {
  const response = await fetchWithKey(ADDRESS, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(credential),
  });
  const content = await response.json().catch(() => null);
  if (!response.ok) throw apiError(response.status, content);
  storePageKey(content.page_key);
}

export async function signOut(): Promise<void> {
  await fetchWithKey(ADDRESS, { method: 'DELETE' });
  storePageKey(null);
}

/** Takes the code of a link out of the address, so that it is in no history; `null` where there is none. */
export function takeCode(): string | null {
  const code = new URLSearchParams(window.location.hash.slice(1)).get('code');
  if (code === null) return null;
  window.history.replaceState(null, '', window.location.pathname + window.location.search);
  return code;
}
