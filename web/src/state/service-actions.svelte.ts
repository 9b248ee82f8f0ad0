/** What a person does to services, from the badge and from their page. */
import { SvelteSet } from 'svelte/reactivity';
import { api, body } from '../api/client';
import type { Service, ServiceStop } from '../api/types';
import { serviceKey, serviceParameters } from '../model/service';
import { acceptService, services } from './services.svelte';

/** Those that were told to stop: the answer comes when their ports are free. */
const ending = new SvelteSet<string>();

/** Whether its end is awaited. */
export function isEnding(service: Service): boolean {
  return ending.has(serviceKey(service));
}

/** Stops a service, those that depend on it first; done when its ports are free or their holders are known. */
export async function stopService(service: Service, force = false): Promise<ServiceStop> {
  const key = serviceKey(service);
  ending.add(key);
  try {
    const params = serviceParameters(service);
    const answer = await body(
      api.POST('/api/v1/services/{name}/stop', { params, body: force ? { force } : {} }),
    );
    acceptService(answer.service);
    return answer;
  } finally {
    ending.delete(key);
    services.refresh();
  }
}

/** Starts it again, or for the first time where it is only defined. */
export async function restartService(service: Service): Promise<Service> {
  return accept(api.POST('/api/v1/services/{name}/restart', { params: serviceParameters(service) }));
}

/** Leaves one that ended out of the lists. */
export async function dismissService(service: Service): Promise<Service> {
  return accept(api.POST('/api/v1/services/{name}/dismiss', { params: serviceParameters(service) }));
}

async function accept(answer: Parameters<typeof body<Service>>[0]): Promise<Service> {
  try {
    const service = await body(answer);
    acceptService(service);
    return service;
  } finally {
    services.refresh();
  }
}
