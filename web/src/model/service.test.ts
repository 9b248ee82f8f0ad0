import { describe, expect, it } from 'vitest';
import type { Service } from '../api/types';
import {
  isFailedService,
  livingDependents,
  processId,
  serviceDisplayState,
  serviceParameters,
  serviceUrl,
  shortUrl,
  withKeys,
  workspaceDirectory,
} from './service';

function service(name: string, fields: Partial<Service> = {}): Service {
  return {
    name,
    status: 'ready',
    living: true,
    command: name,
    defined_in: null,
    depends_on: [],
    execution: null,
    ...fields,
  };
}

const ended = (status: string, kind: string) =>
  ({ phase: 'finished', status, cause: { kind }, id: 'abc', paused: false }) as Service['execution'];

describe('the process of a service', () => {
  it('has an id while it runs, and none between two attempts or after its end', () => {
    const execution = (phase: string) => ({ phase, os_pid: 4321 }) as Service['execution'];
    expect(processId(service('a', { execution: execution('running') }))).toBe(4321);
    expect(processId(service('a', { execution: execution('stopping') }))).toBe(4321);
    expect(processId(service('a', { execution: execution('starting') }))).toBeNull();
    expect(processId(service('a', { living: false, execution: execution('finished') }))).toBeNull();
    expect(processId(service('a', {}))).toBeNull();
  });
});

describe('the state of a service', () => {
  it('is stopping until its ports are free, whatever the daemon says of its processes', () => {
    expect(serviceDisplayState(service('a', { status: 'stopped', living: false }), true)).toBe('stopping');
  });

  it('tells why it failed, and is never quiet about a failure', () => {
    const failed = { status: 'failed', living: false };
    expect(serviceDisplayState(service('a', failed))).toBe('failed');
    expect(
      serviceDisplayState(service('a', { ...failed, execution: ended('failed', 'out_of_memory') })),
    ).toBe('out_of_memory');
    expect(serviceDisplayState(service('a', { ...failed, execution: ended('failed', 'timed_out') }))).toBe(
      'failed',
    );
    expect(serviceDisplayState(service('a', { status: 'crash_looping', living: false }))).toBe(
      'crash_looping',
    );
  });

  it('tells a job that is done from a service that was stopped', () => {
    const stopped = { status: 'stopped', living: false };
    expect(serviceDisplayState(service('a', { ...stopped, execution: ended('completed', 'exited') }))).toBe(
      'completed',
    );
    expect(serviceDisplayState(service('a', { ...stopped, execution: ended('terminated', 'stopped') }))).toBe(
      'terminated',
    );
  });

  it('counts a failure until it is dismissed', () => {
    expect(isFailedService(service('a', { status: 'crash_looping' }))).toBe(true);
    expect(isFailedService(service('a', { status: 'failed', dismissed: true }))).toBe(false);
    expect(isFailedService(service('a', { status: 'stopped' }))).toBe(false);
  });
});

describe('the name of a service', () => {
  it('holds in its workspace; the id of an execution holds everywhere', () => {
    const inShop = service('web', { workspace: '/home/a/shop/ostler.toml' });
    expect(workspaceDirectory(inShop)).toBe('/home/a/shop');
    expect(workspaceDirectory({ workspace: '/ostler.toml' })).toBe('/');
    expect(serviceParameters(inShop)).toEqual({ path: { name: 'web' }, query: { cwd: '/home/a/shop' } });
    expect(serviceParameters({ ...inShop, execution: ended('failed', 'exited') }).path.name).toBe('abc');
  });

  it('is made unique in a list', () => {
    const keys = withKeys([
      service('web'),
      service('web'),
      service('web', { workspace: '/a/ostler.toml' }),
    ]).map(({ key }) => key);
    expect(new Set(keys).size).toBe(3);
  });
});

it('those that depend on a service are stopped with it, also by way of others', () => {
  const db = service('db');
  const api = service('api', { depends_on: [{ name: 'db' }] });
  const web = service('web', { depends_on: [{ name: 'api' }] });
  const idle = service('idle', { depends_on: [{ name: 'db' }], living: false });
  const elsewhere = service('web2', { depends_on: [{ name: 'db' }], workspace: '/x/ostler.toml' });
  expect(livingDependents(db, [db, api, web, idle, elsewhere])).toEqual([api, web]);
});

it('an address that is no web page is not offered', () => {
  const at = (url: string) => service('a', { execution: { service: { url } } as Service['execution'] });
  expect(serviceUrl(at('http://localhost:1/'))).toBe('http://localhost:1/');
  expect(serviceUrl(at('javascript:alert(1)'))).toBeNull();
  expect(serviceUrl(service('a'))).toBeNull();
});

it('an address is short', () => {
  expect(shortUrl('http://localhost:5173/')).toBe('localhost:5173');
  expect(shortUrl('https://localhost:8443/app')).toBe('localhost:8443/app');
});
