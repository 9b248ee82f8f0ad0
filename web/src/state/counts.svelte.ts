/** The numbers in the rail. */
import { isActive } from '../model/display-state';
import { executions } from './executions.svelte';
import { interactions } from './interactions.svelte';
import { services } from './services.svelte';

const counts = $derived({
  active: executions.list.filter(isActive).length,
  terminals: executions.list.filter((execution) => isActive(execution) && execution.terminal).length,
  services: services.list.filter((service) => service.living).length,
  questions: interactions.pending.length,
});

export const railCounts = {
  get all() {
    return counts;
  },
};
