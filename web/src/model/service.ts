/** How a service is shown; pure. */
import type { Service } from '../api/types';
import { type DisplayState, displayState, serviceState, toneOf } from './display-state';

/** What tells a service from all others: its name within its workspace and project. */
export function serviceKey(service: Service): string {
  return [service.workspace ?? '', service.execution?.project ?? '', service.name].join('\n');
}

/** Each service with a key that no other of the list has. */
export function withKeys(services: readonly Service[]): { key: string; service: Service }[] {
  const seen = new Map<string, number>();
  return services.map((service) => {
    const key = serviceKey(service);
    const count = seen.get(key) ?? 0;
    seen.set(key, count + 1);
    return { key: count === 0 ? key : `${key}\n${count}`, service };
  });
}

/** The directory of the `ostler.toml` of its workspace; `null` where it belongs to none. */
export function workspaceDirectory(service: Pick<Service, 'workspace'>): string | null {
  if (service.workspace === undefined) return null;
  return service.workspace.replace(/\/[^/]*$/, '') || '/';
}

/** The parameters of requests about it: by id, which holds everywhere, or by name in its workspace. */
export function serviceParameters(service: Service): { path: { name: string }; query: { cwd?: string } } {
  if (service.execution) return { path: { name: service.execution.id }, query: {} };
  const cwd = workspaceDirectory(service);
  return { path: { name: service.name }, query: cwd === null ? {} : { cwd } };
}

/** Its state. `ending`: it was told to stop, and its ports may not be free yet. */
export function serviceDisplayState(service: Service, ending = false): DisplayState {
  const { status, execution } = service;
  if (ending) return 'stopping';
  if (service.living && execution?.paused) return 'paused';
  if (status === 'failed') {
    const state = execution ? displayState(execution) : 'failed';
    return toneOf(state) === 'failed' ? state : 'failed';
  }
  if (status === 'stopped' && execution?.status === 'completed') return 'completed';
  return serviceState(status);
}

/** The id of its process in the operating system; `null` where it has none, as between two attempts. */
export function processId({ living, execution }: Pick<Service, 'living' | 'execution'>): number | null {
  if (!living || !execution || execution.phase === 'starting') return null;
  return execution.os_pid;
}

/** Whether it failed, and nobody has dismissed that. */
export function isFailedService(service: Service): boolean {
  return !service.dismissed && (service.status === 'failed' || service.status === 'crash_looping');
}

/** Whether it is on its way to work: what the badge tells by a pulse. */
export function isStartingService(service: Service): boolean {
  return service.status === 'starting' || service.status === 'pending';
}

/** The living services of its workspace that are stopped before it, since they depend on it; the nearest first. */
export function livingDependents(service: Service, all: readonly Service[]): Service[] {
  const found: Service[] = [];
  const near = all.filter((other) => other.living && other.workspace === service.workspace);
  let names = new Set([service.name]);
  while (names.size > 0) {
    const next = near.filter(
      (other) =>
        other.name !== service.name &&
        !found.includes(other) &&
        dependenciesOf(other).some((dependency) => names.has(dependency.name)),
    );
    found.push(...next);
    names = new Set(next.map((other) => other.name));
  }
  return found;
}

/** What it depends on, by its definition or, where it has none, by how it was started. */
export function dependenciesOf(service: Service): Service['depends_on'] {
  return service.depends_on.length > 0 ? service.depends_on : (service.execution?.service?.depends_on ?? []);
}

/** The address of its main port, to be clicked; nothing but http and https, whatever a program printed. */
export function serviceUrl(service: Service): string | null {
  const url = service.execution?.service?.url;
  return url && /^https?:\/\//i.test(url) ? url : null;
}

/** An address without what all of them begin with: `localhost:5173/app`. */
export function shortUrl(url: string): string {
  return url.replace(/^https?:\/\//, '').replace(/\/$/, '');
}
