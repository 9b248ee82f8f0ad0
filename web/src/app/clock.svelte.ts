/** The present time, in steps of a second, while the page is visible and something shows it. */
import { createSubscriber } from 'svelte/reactivity';

const subscribe = createSubscriber((update) => {
  const timer = setInterval(() => {
    if (document.visibilityState === 'visible') update();
  }, 1_000);
  return () => clearInterval(timer);
});

export const clock = {
  get now(): number {
    subscribe();
    return Date.now();
  },
};
