/** The host that shows the dashboard: its theme and language, and the tools called through it. */
import { App, applyHostStyleVariables } from '@modelcontextprotocol/ext-apps';
import { useLocale } from './messages.svelte';
import { type ListedProcess, listedProcesses, resultText } from './results';

/** The time between two lists while the dashboard is visible, in milliseconds. */
const REFRESH_MS = 3_000;
/** The last lines of output that are shown. */
const TAIL_LINES = 200;

let processes = $state.raw<ListedProcess[]>([]);
let problem = $state<string | null>(null);
let connected = $state(false);
let mode = $state<'inline' | 'fullscreen' | 'pip'>('inline');
let canGrow = $state(false);

const app = new App(
  { name: 'Ostler', version: '0.1.0' },
  { availableDisplayModes: ['inline', 'fullscreen'] },
);

type HostContext = NonNullable<ReturnType<typeof app.getHostContext>>;

export const host = {
  get processes(): ListedProcess[] {
    return processes;
  },
  get problem(): string | null {
    return problem;
  },
  get connected(): boolean {
    return connected;
  },
  get mode() {
    return mode;
  },
  /** Whether it can be shown larger. */
  get canGrow(): boolean {
    return canGrow && mode === 'inline';
  },
};

/** Speaks with the host until the returned function is called. */
export function connectHost(): () => void {
  app.addEventListener('toolresult', (result) => {
    processes = listedProcesses(result) ?? processes;
  });
  app.addEventListener('hostcontextchanged', applyContext);
  const timer = setInterval(() => {
    if (connected && document.visibilityState === 'visible') void refresh();
  }, REFRESH_MS);
  void attempt(async () => {
    await app.connect();
    connected = true;
    applyContext(app.getHostContext() ?? {});
    await refresh();
  });
  return () => {
    clearInterval(timer);
    void app.close();
  };
}

function applyContext(context: HostContext): void {
  const dark = context.theme
    ? context.theme === 'dark'
    : window.matchMedia('(prefers-color-scheme: dark)').matches;
  if (context.theme || !document.documentElement.dataset['theme']) {
    document.documentElement.dataset['theme'] = dark ? 'dark' : 'light';
  }
  if (context.styles?.variables) applyHostStyleVariables(context.styles.variables);
  if (context.locale) useLocale(context.locale);
  if (context.displayMode) mode = context.displayMode;
  if (context.availableDisplayModes) canGrow = context.availableDisplayModes.includes('fullscreen');
}

async function refresh(): Promise<void> {
  const result = await attempt(() => app.callServerTool({ name: 'process', arguments: { action: 'list' } }));
  if (result) processes = listedProcesses(result) ?? processes;
}

/** The last lines that a process printed. */
export async function readOutput(id: string): Promise<string> {
  const call = { name: 'process', arguments: { action: 'output', ids: [id], tail: TAIL_LINES } };
  const result = await attempt(() => app.callServerTool(call));
  return result ? resultText(result) : '';
}

export async function stopProcess(id: string): Promise<void> {
  await attempt(() =>
    app.callServerTool({ name: 'process_control', arguments: { action: 'stop', ids: [id] } }),
  );
  await refresh();
}

export function openAddress(url: string): void {
  void attempt(() => app.openLink({ url }));
}

export function grow(): void {
  void attempt(async () => {
    mode = (await app.requestDisplayMode({ mode: 'fullscreen' })).mode;
  });
}

/** The result of a request to the host; without one, the reason is shown. */
async function attempt<T>(request: () => Promise<T>): Promise<T | null> {
  try {
    const result = await request();
    problem = null;
    return result;
  } catch (error) {
    problem = error instanceof Error ? error.message : String(error);
    return null;
  }
}
