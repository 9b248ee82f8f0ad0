import { expect, test } from 'vitest';
import type { Execution } from '../api/types';
import { projectName, projectsOf } from './projects';

const execution = (project: string | undefined, phase: string) => ({ project, phase }) as Execution;

test('projects with running executions come first', () => {
  const projects = projectsOf([
    execution('/srv/api', 'finished'),
    execution('/srv/web', 'running'),
    execution(undefined, 'running'),
    execution('/srv/web', 'finished'),
    execution('/home/a b/', 'finished'),
  ]);
  expect(projects.map((it) => [it.name, it.active])).toEqual([
    ['web', 1],
    ['a b', 0],
    ['api', 0],
  ]);
  expect(projectName('/')).toBe('/');
});
