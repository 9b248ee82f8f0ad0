/** The request that the form for a command makes; pure. */
import type { StartRequest } from '../../api/types';
import { parseDuration } from '../../format/duration';
import type { MessageKey } from '../../i18n/index.svelte';

export const LEVELS = ['basic', 'medium', 'high', 'container'] as const;
export type Level = (typeof LEVELS)[number];

export interface RunForm {
  /** `shell`: a line for the shell; `arguments`: the program and its arguments, one a line. */
  mode: 'shell' | 'arguments';
  command: string;
  directory: string;
  description: string;
  /** Separated by commas. */
  labels: string;
  terminal: boolean;
  /** Empty: that of the settings. */
  level: Level | '';
  /** Empty: none of its own. */
  timeout: string;
}

export type RunErrors = Partial<Record<'command' | 'directory' | 'timeout', MessageKey>>;

const SHELL = '/bin/sh';
/** The terminal until somebody opens it. */
const TERMINAL = { cols: 120, rows: 32 };

export function runErrors(form: RunForm): RunErrors {
  const errors: RunErrors = {};
  if (form.command.trim() === '') errors.command = 'processes.run_command_missing';
  if (!form.directory.startsWith('/')) errors.directory = 'processes.run_directory_absolute';
  const timeout = form.timeout.trim();
  if (timeout !== '' && !parseDuration(timeout)) errors.timeout = 'processes.run_timeout_invalid';
  return errors;
}

/** `approval`: the question in which a person agreed, where the policy asks for that. */
export function runRequest(form: RunForm, approval?: string): StartRequest {
  const timeout = parseDuration(form.timeout);
  const labels = form.labels.split(',').map((label) => label.trim());
  return {
    command: commandOf(form),
    cwd: form.directory,
    description: form.description.trim(),
    labels: [...new Set(labels.filter(Boolean))],
    ...(form.terminal ? { pty: TERMINAL } : {}),
    ...(form.level ? { isolation: form.level } : {}),
    ...(timeout ? { timeout_ms: timeout } : {}),
    ...(approval === undefined ? {} : { approval }),
  };
}

function commandOf({ mode, command }: RunForm): StartRequest['command'] {
  if (mode === 'shell') return { shell: { shell: SHELL, script: command } };
  const [program = '', ...args] = command.replace(/\n+$/, '').split('\n');
  return { argv: { program, args } };
}
