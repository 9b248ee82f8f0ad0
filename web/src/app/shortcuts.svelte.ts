/**
 * Keys. A page registers its own while it is shown; the newest registration that has a key gets it. Single letters
 * are not heard in text fields, and not at all where the person has switched them off.
 */
import { untrack } from 'svelte';
import type { MessageKey } from '../i18n/index.svelte';
import { preferences } from './preferences.svelte';

export interface Shortcut {
  /** As `KeyboardEvent.key`, with `Ctrl+` and `Shift+` in front; two with a blank between them are a sequence (`g p`). */
  keys: string;
  /** What it does; absent for a second key of the same action. */
  label?: MessageKey;
  action: (event: KeyboardEvent) => void;
}

export interface ShortcutGroup {
  label: MessageKey;
  shortcuts: Shortcut[];
}

/** The time in which the second key of a sequence is awaited, in milliseconds. */
const SEQUENCE_MS = 1_000;

let groups = $state.raw<ShortcutGroup[]>([]);
let prefix = '';
let prefixTimer: ReturnType<typeof setTimeout> | undefined;

export const shortcuts = {
  /** Those that are in force, for the table of keys. */
  get groups(): ShortcutGroup[] {
    return groups;
  },
};

/** Registers keys until the returned function is called. */
export function registerShortcuts(group: ShortcutGroup): () => void {
  // An effect that registers does not depend on what others registered.
  groups = [...untrack(() => groups), group];
  return () => {
    groups = groups.filter((other) => other !== group);
  };
}

/** The name of a key press, as in {@link Shortcut.keys}. */
export function keyName(
  event: Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'altKey' | 'shiftKey'>,
): string {
  const letter = event.key.length === 1;
  const parts = [];
  if (event.ctrlKey || event.metaKey) parts.push('Ctrl');
  if (event.altKey) parts.push('Alt');
  // The shift of a sign such as ? is in the sign.
  if (event.shiftKey && (!letter || /[a-z]/i.test(event.key))) parts.push('Shift');
  parts.push(letter ? event.key.toLowerCase() : event.key);
  return parts.join('+');
}

function isTextField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target.closest('[data-keys="own"]')) return true;
  if (target instanceof HTMLInputElement)
    return !['checkbox', 'radio', 'button', 'submit'].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

/** Hears keys until the returned function is called. */
export function startShortcuts(): () => void {
  document.addEventListener('keydown', onKey);
  return () => document.removeEventListener('keydown', onKey);
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing || document.querySelector('dialog[open]')) return;
  const name = keyName(event);
  const single = !name.startsWith('Ctrl+') && !name.startsWith('Alt+');
  if (isTextField(event.target)) {
    if (single) return;
  } else if (single && event.key.length === 1 && !preferences.singleKeys) return;
  const sequence = prefix ? `${prefix} ${name}` : '';
  setPrefix('');
  const found = find(sequence) ?? find(name);
  if (found) {
    event.preventDefault();
    found.action(event);
  } else if (isPrefix(name)) {
    setPrefix(name);
  }
}

function setPrefix(name: string): void {
  prefix = name;
  clearTimeout(prefixTimer);
  if (name) prefixTimer = setTimeout(() => setPrefix(''), SEQUENCE_MS);
}

function find(keys: string): Shortcut | undefined {
  if (!keys) return undefined;
  for (const group of groups.toReversed()) {
    const found = group.shortcuts.find((shortcut) => shortcut.keys === keys);
    if (found) return found;
  }
  return undefined;
}

function isPrefix(name: string): boolean {
  return groups.some((group) => group.shortcuts.some((shortcut) => shortcut.keys.startsWith(`${name} `)));
}
