/** The keys of the log. */
import type { Shortcut, ShortcutGroup } from '../../../app/shortcuts.svelte';

export interface LogActions {
  toggleFollow(): void;
  toStart(): void;
  toEnd(): void;
  focusSearch(): void;
  nextMatch(backward: boolean): void;
  nextFailure(backward: boolean): void;
  toggleWrap(): void;
  nextTime(): void;
  mark(): void;
  showMinutes(minutes: number): void;
  nextStream(backward: boolean): void;
  askLine(): void;
  copy(withTimes: boolean): void;
  copyLink(): void;
  download(): void;
}

/** The minutes of the keys 0 to 5; 0 is all. */
export const KEY_MINUTES = [0, 1, 5, 15, 30, 60] as const;

export function logShortcuts(actions: LogActions): ShortcutGroup {
  const minutes = KEY_MINUTES.map((count, key): Shortcut => {
    const action = () => actions.showMinutes(count);
    return key === 0 ? { keys: '0', label: 'process.key_minutes', action } : { keys: String(key), action };
  });
  return {
    label: 'process.keys_log',
    shortcuts: [
      { keys: 'f', label: 'process.key_follow', action: actions.toggleFollow },
      { keys: 'g g', label: 'process.key_start', action: actions.toStart },
      { keys: 'Shift+g', label: 'process.key_end', action: actions.toEnd },
      { keys: '/', label: 'process.key_search', action: actions.focusSearch },
      { keys: 'n', label: 'process.key_next_match', action: () => actions.nextMatch(false) },
      { keys: 'Shift+n', label: 'process.key_previous_match', action: () => actions.nextMatch(true) },
      { keys: 'e', label: 'process.key_next_error', action: () => actions.nextFailure(false) },
      { keys: 'Shift+e', label: 'process.key_previous_error', action: () => actions.nextFailure(true) },
      { keys: 'w', label: 'process.key_wrap', action: actions.toggleWrap },
      { keys: 't', label: 'process.key_time', action: actions.nextTime },
      { keys: 'm', label: 'process.key_mark', action: actions.mark },
      ...minutes,
      { keys: ']', label: 'process.key_stream', action: () => actions.nextStream(false) },
      { keys: '[', action: () => actions.nextStream(true) },
      { keys: 'l', label: 'process.key_line', action: actions.askLine },
      { keys: 'y', label: 'process.key_copy', action: () => actions.copy(false) },
      { keys: 'Alt+y', label: 'process.copy_with_times', action: () => actions.copy(true) },
      { keys: 'Shift+y', label: 'process.key_copy_link', action: actions.copyLink },
      { keys: 'd', label: 'process.key_download', action: actions.download },
    ],
  };
}
