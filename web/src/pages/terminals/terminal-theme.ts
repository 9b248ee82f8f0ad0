/** The colours of terminals: those of the page. */
import type { ITheme } from '@xterm/xterm';

const NAMES = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'] as const;

/** The colours of the theme that is shown now. */
export function terminalTheme(): ITheme {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(name).trim();
  const ansi: Partial<Record<string, string>> = {};
  for (const [index, name] of NAMES.entries()) {
    ansi[name] = of(`--ansi-${index}`);
    ansi[`bright${name.charAt(0).toUpperCase()}${name.slice(1)}`] = of(`--ansi-${index + 8}`);
  }
  return {
    ...ansi,
    background: of('--log'),
    foreground: of('--ink'),
    cursor: of('--ink'),
    cursorAccent: of('--log'),
    selectionBackground: `${of('--accent')}4d`,
    selectionInactiveBackground: `${of('--accent')}33`,
    scrollbarSliderBackground: `${of('--field')}66`,
    scrollbarSliderHoverBackground: `${of('--field')}99`,
    scrollbarSliderActiveBackground: `${of('--field')}cc`,
  };
}

/** The colours of matches of a search. */
export function searchColours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(name).trim();
  return {
    matchBackground: of('--hit'),
    matchOverviewRuler: of('--starting-fill'),
    activeMatchBackground: of('--hit'),
    activeMatchBorder: of('--accent'),
    activeMatchColorOverviewRuler: of('--accent'),
  };
}

/** Calls `listener` when the theme changes. Returns what ends that. */
export function onThemeChange(listener: () => void): () => void {
  const observer = new MutationObserver(listener);
  observer.observe(document.documentElement, { attributeFilter: ['data-theme'] });
  return () => observer.disconnect();
}
