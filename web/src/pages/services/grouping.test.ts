import { expect, it } from 'vitest';
import type { Service } from '../../api/types';
import { countByStatus, groupByWorkspace, matchesText, Places, statusFilterOf, stopOrder } from './grouping';

function service(name: string, fields: Partial<Service> = {}): Service {
  const base = { name, status: 'ready', living: true, command: `run ${name}`, defined_in: null };
  return { ...base, depends_on: [], execution: null, ...fields };
}

function names(groups: ReturnType<typeof groupByWorkspace>) {
  return groups.map((group) => [group.workspace, ...group.services.map((entry) => entry.service.name)]);
}

it('services stand by workspace, those that live first', () => {
  const groups = groupByWorkspace(
    [
      service('web'),
      service('b', { workspace: '/w/shop/ostler.toml' }),
      service('a', { workspace: '/w/shop/ostler.toml', living: false, status: 'stopped' }),
      service('c', { workspace: '/w/blog/ostler.toml', living: false, status: 'stopped' }),
      service('d', { workspace: '/w/data/ostler.toml', living: false, status: 'failed' }),
    ],
    new Places(),
  );
  expect(names(groups)).toEqual([
    ['/w/data', 'd'],
    ['/w/shop', 'b', 'a'],
    [null, 'web'],
    ['/w/blog', 'c'],
  ]);
});

it('a service keeps its place when its state changes', () => {
  const places = new Places();
  const running = [service('a'), service('b')];
  groupByWorkspace(running, places);
  const stopped = [service('a', { living: false, status: 'stopped' }), service('b')];
  expect(names(groupByWorkspace(stopped, places))).toEqual([[null, 'a', 'b']]);
  expect(names(groupByWorkspace(stopped, new Places()))).toEqual([[null, 'b', 'a']]);
});

it('services are counted by what became of them', () => {
  const list = [
    service('a'),
    service('b', { living: false, status: 'failed' }),
    service('c', { living: false, status: 'failed', dismissed: true }),
    service('d', { living: false, status: 'stopped' }),
  ];
  expect(countByStatus(list)).toEqual({ all: 4, living: 1, failed: 1, stopped: 2 });
  expect(statusFilterOf('failed')).toBe('failed');
  expect(statusFilterOf('nonsense')).toBe('all');
});

it('a search finds words in any order', () => {
  expect(matchesText(service('web', { workspace: '/w/shop/ostler.toml' }), 'shop RUN')).toBe(true);
  expect(matchesText(service('web'), 'shop')).toBe(false);
});

it('those that depend on others are stopped first, and a circle does not hold anything up', () => {
  const db = service('db');
  const api = service('api', { depends_on: [{ name: 'db' }] });
  const web = service('web', { depends_on: [{ name: 'api' }] });
  expect(stopOrder([db, api, web]).map((it) => it.name)).toEqual(['web', 'api', 'db']);
  const a = service('a', { depends_on: [{ name: 'b' }] });
  const b = service('b', { depends_on: [{ name: 'a' }] });
  expect(stopOrder([a, b])).toHaveLength(2);
});
