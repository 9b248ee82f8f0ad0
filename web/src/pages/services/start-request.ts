/** From the form of the start dialog to the request; pure. */
import type { ServiceStart } from '../../api/types';
import type { MessageKey } from '../../i18n/index.svelte';

export const READY_CONDITIONS = [
  'default',
  'listening',
  'responding',
  'log',
  'notify',
  'http',
  'tcp',
  'quiet',
] as const;
export type ReadyCondition = (typeof READY_CONDITIONS)[number];

export const RESTART_POLICIES = ['never', 'on_failure', 'always'] as const;
export type RestartChoice = (typeof RESTART_POLICIES)[number];

/** What is typed, as it is typed. */
export interface StartForm {
  command: string;
  cwd: string;
  name: string;
  description: string;
  port: string;
  restart: RestartChoice;
  restartMax: string;
  readyWhen: ReadyCondition;
  /** The address, port or seconds of the condition. */
  readyValue: string;
  readyPattern: string;
  failPattern: string;
  readyTimeout: string;
  dependsOn: string[];
  /** `NAME=VALUE`, one a line. */
  environment: string;
}

export const EMPTY_FORM: StartForm = {
  command: '',
  cwd: '',
  name: '',
  description: '',
  port: '',
  restart: 'never',
  restartMax: '5',
  readyWhen: 'default',
  readyValue: '',
  readyPattern: '',
  failPattern: '',
  readyTimeout: '',
  dependsOn: [],
  environment: '',
};

/** What is wrong with a field, by the key of its message. */
export type FormProblems = Partial<Record<keyof StartForm, MessageKey>>;

const PORTS = 65_535;
const NAME = /^[a-z0-9][a-z0-9_.-]{0,62}$/;

/** What can be told without asking the daemon. */
export function checkForm(form: StartForm): FormProblems {
  const problems: FormProblems = {};
  if (form.command.trim() === '') problems.command = 'services.problem_command';
  if (!form.cwd.trim().startsWith('/')) problems.cwd = 'services.problem_cwd';
  if (form.name !== '' && !NAME.test(form.name)) problems.name = 'services.problem_name';
  if (form.port !== '' && form.port !== 'auto' && !isPort(form.port)) problems.port = 'services.problem_port';
  if (form.restart !== 'never' && !isCount(form.restartMax)) problems.restartMax = 'services.problem_count';
  if (form.readyTimeout !== '' && !isCount(form.readyTimeout))
    problems.readyTimeout = 'services.problem_count';
  const ready = checkReadyValue(form);
  if (ready) problems.readyValue = ready;
  if (badLine(form.environment)) problems.environment = 'services.problem_environment';
  return problems;
}

function checkReadyValue({ readyWhen, readyValue }: StartForm): MessageKey | null {
  if (readyWhen === 'http' && !/^(https?:\/\/|\/)/.test(readyValue)) return 'services.problem_http';
  if (readyWhen === 'tcp' && !isPort(readyValue)) return 'services.problem_port';
  if (readyWhen === 'quiet' && !isCount(readyValue)) return 'services.problem_count';
  return null;
}

function isPort(text: string): boolean {
  return isCount(text) && Number(text) <= PORTS;
}

function isCount(text: string): boolean {
  return /^[1-9]\d{0,8}$/.test(text.trim());
}

function environmentLines(text: string): string[] {
  return text.split('\n').filter((line) => line.trim() !== '');
}

function badLine(text: string): boolean {
  return environmentLines(text).some((line) => !/^\s*[A-Za-z_][A-Za-z0-9_]*=/.test(line));
}

/** The body of the request. The command is a line for a shell, as a person writes it. */
export function startRequest(form: StartForm): ServiceStart {
  const filled = <T>(text: string, value: (text: string) => T): T | undefined =>
    text.trim() === '' ? undefined : value(text.trim());
  const optional = {
    name: filled(form.name, String),
    description: filled(form.description, String),
    port: filled(form.port, (text) => (text === 'auto' ? ('auto' as const) : Number(text))),
    ready_pattern: filled(form.readyPattern, String),
    fail_pattern: filled(form.failPattern, String),
    ready_timeout_ms: filled(form.readyTimeout, (text) => Number(text) * 1000),
    ready_when: readyCondition(form),
    depends_on: form.dependsOn.length > 0 ? form.dependsOn : undefined,
    env: environmentLines(form.environment).map(environmentPair),
    restart: restartPolicy(form),
  };
  const given = Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined));
  return { command: shellCommand(form.command), cwd: form.cwd.trim(), ...given };
}

/** A line for `sh`. */
export function shellCommand(script: string): ServiceStart['command'] {
  return { shell: { shell: '/bin/sh', script: script.trim() } };
}

function environmentPair(line: string): [string, string] {
  const at = line.indexOf('=');
  return [line.slice(0, at).trim(), line.slice(at + 1)];
}

function readyCondition({ readyWhen, readyValue }: StartForm): ServiceStart['ready_when'] | undefined {
  switch (readyWhen) {
    case 'default':
      return undefined;
    case 'http':
      return { http: readyValue.trim() };
    case 'tcp':
      return { tcp: Number(readyValue) };
    case 'quiet':
      return { quiet_ms: Number(readyValue) * 1000 };
    default:
      return readyWhen;
  }
}

function restartPolicy({ restart, restartMax }: StartForm): ServiceStart['restart'] {
  if (restart === 'never') return 'never';
  const max = Number(restartMax);
  return restart === 'always' ? { always: { max } } : { on_failure: { max } };
}
