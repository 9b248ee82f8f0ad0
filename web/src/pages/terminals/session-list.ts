/** The sessions that have a terminal; pure. */
import type { Execution } from '../../api/types';
import { isActive } from '../../model/display-state';

/** Ended sessions that are listed. */
const ENDED = 30;

export interface SessionList {
  /** Those that run, newest first. */
  living: Execution[];
  /** The newest of those that ended. */
  ended: Execution[];
}

export function sessionsOf(executions: readonly Execution[]): SessionList {
  const sessions = executions.filter((execution) => execution.terminal);
  return {
    living: sessions.filter(isActive),
    ended: sessions.filter((execution) => !isActive(execution)).slice(0, ENDED),
  };
}

/** Directories that were used, the last one first. */
export function usedDirectories(directories: readonly string[]): string[] {
  return [...new Set(directories.filter((directory) => directory.startsWith('/')))].slice(0, 20);
}

/** The command of a session. The options that make a shell tell of its commands are left out: nobody typed them. */
export function sessionTitle(command: string): string {
  const shell = /^(?:\S*\/)?(bash|zsh|fish)\s.*\/shell\/\1\//.exec(command);
  return shell?.[1] ?? command;
}
