/** The projects of executions, by name; pure. */

import type { Execution } from '../api/types';
import { visibleLine } from '../format/visible-text';

export interface ProjectEntry {
  /** Its directory, which is its identity. */
  project: string;
  /** The last part of the directory. */
  name: string;
  /** Executions that run in it. */
  active: number;
}

/** The projects of these executions: those with running ones first, then by name. */
export function projectsOf(executions: readonly Execution[]): ProjectEntry[] {
  const found = new Map<string, ProjectEntry>();
  for (const { project, phase } of executions) {
    if (!project) continue;
    const entry = found.get(project) ?? { project, name: projectName(project), active: 0 };
    if (phase !== 'finished') entry.active += 1;
    found.set(project, entry);
  }
  const byActivity = (a: ProjectEntry, b: ProjectEntry) => Number(b.active > 0) - Number(a.active > 0);
  return [...found.values()].sort((a, b) => byActivity(a, b) || a.name.localeCompare(b.name));
}

export function projectName(project: string): string {
  return visibleLine(project.replace(/\/+$/, '').split('/').at(-1) || project);
}
