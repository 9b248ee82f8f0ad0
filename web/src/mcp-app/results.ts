/** What the tools answer, as far as the dashboard shows it; checked, since a host passes it on. */
import type { DisplayState } from '../model/display-state';

export interface ListedProcess {
  id: string;
  command: string;
  state: DisplayState;
  /** Whether it can be stopped. */
  running: boolean;
  startedAt: string | null;
  /** Seconds. */
  duration: number;
  exit: string | null;
  url: string | null;
}

interface ToolResult {
  structuredContent?: unknown;
  content?: unknown;
}

const ENDS: Record<string, DisplayState> = {
  completed: 'completed',
  failed: 'failed',
  terminated: 'terminated',
  error: 'lost',
};
const SERVICES: Record<string, DisplayState> = {
  pending: 'starting',
  starting: 'starting',
  listening: 'listening',
  responding: 'responding',
  ready: 'ready',
  running: 'running',
  degraded: 'degraded',
  stopping: 'stopping',
  crash_looping: 'crash_looping',
  failed: 'failed',
};

/** The list in an answer of `process list`; `null` for anything else. */
export function listedProcesses(result: ToolResult): ListedProcess[] | null {
  const content = asRecord(result.structuredContent);
  if (!Array.isArray(content['processes'])) return null;
  return content['processes'].map(asRecord).flatMap((entry) => {
    const { id, command, status } = entry;
    if (typeof id !== 'string' || typeof command !== 'string' || typeof status !== 'string') return [];
    const service = asRecord(entry['service']);
    const running = status === 'running';
    const named = running ? SERVICES[String(service['status'])] : undefined;
    return [
      {
        id,
        command,
        state: named ?? (running ? 'running' : (ENDS[status] ?? 'lost')),
        running,
        startedAt: text(entry['start_time']),
        duration: typeof entry['duration'] === 'number' ? entry['duration'] : 0,
        exit: entry['signal'] ? text(entry['signal']) : numberText(entry['exit_code']),
        url: webAddress(service['url']),
      },
    ];
  });
}

/** All text of an answer. */
export function resultText(result: ToolResult): string {
  if (!Array.isArray(result.content)) return '';
  return result.content
    .map(asRecord)
    .flatMap((block) =>
      block['type'] === 'text' && typeof block['text'] === 'string' ? [block['text']] : [],
    )
    .join('\n');
}

/** An address that may be opened: http and https only. */
export function webAddress(value: unknown): string | null {
  if (typeof value !== 'string') return null;
  try {
    const { protocol } = new URL(value);
    return protocol === 'http:' || protocol === 'https:' ? value : null;
  } catch {
    return null;
  }
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function numberText(value: unknown): string | null {
  return typeof value === 'number' ? String(value) : null;
}
