/** Which daemon this is. */
import { api, body } from '../api/client';
import { onOpen } from './connection.svelte';

let version = $state<string | null>(null);

export const daemonInfo = {
  get version(): string | null {
    return version;
  },
  get host(): string {
    return window.location.host;
  },
  /** Whether it is reached over the loopback. */
  get isLocal(): boolean {
    return ['localhost', '127.0.0.1', '[::1]'].includes(window.location.hostname);
  },
};

/** Reads it now and whenever a daemon answers again. */
export function followDaemonInfo(): () => void {
  return onOpen(() => void load());
}

async function load(): Promise<void> {
  try {
    version = (await body(api.GET('/api/v1/version', { params: {} }))).version;
  } catch {
    // Shown as unknown.
  }
}
