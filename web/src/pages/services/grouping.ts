/** Which services are listed, and in which order; pure. */
import type { Service } from '../../api/types';
import { isFailedService, withKeys, workspaceDirectory } from '../../model/service';

export type StatusFilter = 'all' | 'living' | 'failed' | 'stopped';
export const STATUS_FILTERS: readonly StatusFilter[] = ['all', 'living', 'failed', 'stopped'];

export interface ServiceGroup {
  /** The directory of the workspace; `null` for those of none. */
  workspace: string | null;
  services: { key: string; service: Service }[];
}

export function statusFilterOf(text: string | null): StatusFilter {
  return STATUS_FILTERS.find((filter) => filter === text) ?? 'all';
}

/** What a service counts as. One that failed and was dismissed has stopped. */
export function statusGroup(service: Service): Exclude<StatusFilter, 'all'> {
  if (service.living) return 'living';
  return isFailedService(service) ? 'failed' : 'stopped';
}

export function countByStatus(services: readonly Service[]): Record<StatusFilter, number> {
  const counts = { all: services.length, living: 0, failed: 0, stopped: 0 };
  for (const service of services) counts[statusGroup(service)] += 1;
  return counts;
}

/** Whether all words of a search are in its name, command, description, address or workspace. */
export function matchesText(service: Service, text: string): boolean {
  const state = service.execution?.service;
  const ports = state?.ports.map((port) => `:${port.port}`).join(' ');
  const all = [
    service.name,
    service.command,
    service.execution?.description,
    state?.url,
    ports,
    service.workspace,
  ]
    .join(' ')
    .toLowerCase();
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((word) => all.includes(word));
}

/**
 * Where services stand: those that live or failed before the others. Each keeps the place that it had when it was
 * seen first, so that a change of state moves nothing.
 */
export class Places {
  #places = new Map<string, number>();

  of(key: string, service: Service): number {
    const known = this.#places.get(key);
    if (known !== undefined) return known;
    const place = statusGroup(service) === 'stopped' ? 1 : 0;
    this.#places.set(key, place);
    return place;
  }
}

/** By workspace; those with services that live stand first, the services of none last of them. */
export function groupByWorkspace(services: readonly Service[], places: Places): ServiceGroup[] {
  const groups = new Map<string | null, ServiceGroup>();
  const place = ({ key, service }: ServiceGroup['services'][number]) => places.of(key, service);
  for (const entry of withKeys(services)) {
    const workspace = workspaceDirectory(entry.service);
    const group = groups.get(workspace) ?? { workspace, services: [] };
    group.services.push(entry);
    groups.set(workspace, group);
  }
  for (const group of groups.values()) {
    group.services.sort((a, b) => place(a) - place(b) || a.service.name.localeCompare(b.service.name));
  }
  const rank = (group: ServiceGroup) => Math.min(...group.services.map(place));
  return [...groups.values()].sort((a, b) => {
    if (rank(a) !== rank(b)) return rank(a) - rank(b);
    if (a.workspace === null || b.workspace === null) return a.workspace === null ? 1 : -1;
    return a.workspace.localeCompare(b.workspace);
  });
}

/** Living ones, those that depend on others before those: the order in which they are stopped. */
export function stopOrder(services: readonly Service[]): Service[] {
  const living = services.filter((service) => service.living);
  const ordered: Service[] = [];
  while (ordered.length < living.length) {
    const rest = living.filter((service) => !ordered.includes(service));
    const needed = new Set(
      rest.flatMap((service) => service.depends_on.map((dependency) => dependency.name)),
    );
    const free = rest.filter((service) => !needed.has(service.name));
    ordered.push(...(free.length > 0 ? free : rest));
  }
  return ordered;
}
