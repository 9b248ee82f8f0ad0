/** From the form of a new token to the request; pure. */
import type { NewToken } from '../../api/types';
import type { MessageKey } from '../../i18n/index.svelte';

export const SCOPES = ['project:read', 'project:write', 'sessions:all', 'daemon:stop'] as const;
export type TokenScope = (typeof SCOPES)[number];

/** The key of what a scope permits. */
export const SCOPE_TEXTS: Record<TokenScope, MessageKey> = {
  'project:read': 'settings.scope_project_read',
  'project:write': 'settings.scope_project_write',
  'sessions:all': 'settings.scope_sessions_all',
  'daemon:stop': 'settings.scope_daemon_stop',
};

/** Days until a token ends; `null` for one that does not. */
export const LIFETIMES = [7, 30, 90, 365, null] as const;

const DAY_MS = 86_400_000;

export interface TokenForm {
  name: string;
  principal: string;
  scopes: TokenScope[];
  days: number | null;
}

export function tokenRequest(form: TokenForm, now: number): NewToken {
  return {
    name: form.name.trim(),
    scopes: form.scopes,
    ...(form.principal.trim() === '' ? {} : { principal: form.principal.trim() }),
    ...(form.days === null ? {} : { expires: new Date(now + form.days * DAY_MS).toISOString() }),
  };
}

/** Whether a token has ended. */
export function isExpired(expires: string | undefined, now: number): boolean {
  return expires !== undefined && Date.parse(expires) <= now;
}
