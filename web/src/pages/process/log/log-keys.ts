/** The keys that scroll, where nothing else has them: in the log, or where nothing has the focus. */
import type { LogModel } from './log-model.svelte';

export function scrollKey(event: KeyboardEvent, model: LogModel): boolean {
  if (event.defaultPrevented || event.altKey || !isForLog(event.target, event.key)) return false;
  if (document.querySelector('dialog[open]')) return false;
  if (event.ctrlKey || event.metaKey) {
    if (event.key !== 'a') return false;
    model.selectAll();
    return true;
  }
  const actions: Record<string, () => void> = {
    Home: () => model.toStart(),
    End: () => model.toEnd(),
    PageUp: () => model.page(-1),
    PageDown: () => model.page(1),
    ' ': () => model.page(event.shiftKey ? -1 : 1),
    ArrowUp: () => model.scroll(-1),
    ArrowDown: () => model.scroll(1),
  };
  const action = actions[event.key];
  if (!action) return false;
  action();
  return true;
}

/** Keys that buttons and links have no use for. */
const FREE_KEYS = new Set(['Home', 'End', 'PageUp', 'PageDown']);

function isForLog(target: EventTarget | null, key: string): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target === document.body || target.id === 'main' || target.id === 'log') return true;
  const isBeside = target.closest('aside, [role="menu"], [role="dialog"], [role="radiogroup"]') !== null;
  return FREE_KEYS.has(key) && !isBeside && (target.tagName === 'BUTTON' || target.tagName === 'A');
}
