/** The present time, in steps of a second, while the page is visible and something shows it. */
import { createSubscriber } from 'svelte/reactivity';
import { serverNow } from '../api/server-clock';

const subscribe = createSubscriber((update) => {
  const timer = setInterval(() => {
    if (document.visibilityState === 'visible') update();
  }, 1_000);
  return () => clearInterval(timer);
});

export const clock = {
  /** By the browser's clock: for what the page itself measures. */
  get now(): number {
    subscribe();
    return Date.now();
  },
  /** By the daemon's clock: for what is compared with times of its answers. */
  get server(): number {
    subscribe();
    return serverNow();
  },
};
