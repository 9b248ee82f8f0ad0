/** What a person chose for this browser. */
import { isLanguage, type Language } from '../i18n/languages';

export type Theme = 'system' | 'light' | 'dark';
export type Density = 'comfortable' | 'compact';
export type LineTime = 'off' | 'clock' | 'elapsed';

export interface Preferences {
  theme: Theme;
  /** `null`: that of the browser. */
  language: Language | null;
  density: Density;
  utc: boolean;
  singleKeys: boolean;
  announceLines: boolean;
  logWrap: boolean;
  logColours: boolean;
  logTime: LineTime;
  /** Pixels. */
  logSize: number;
  terminalSize: number;
  /** Whether terminals keep a copy of their lines for screen readers. */
  terminalScreenReader: boolean;
  /** Whether the browser tells of questions while the page is not looked at. */
  notifyQuestions: boolean;
}

const KEY = 'ostler.preferences';
const DEFAULTS: Preferences = {
  theme: 'system',
  language: null,
  density: 'comfortable',
  utc: false,
  singleKeys: true,
  announceLines: false,
  logWrap: false,
  logColours: true,
  logTime: 'clock',
  logSize: 12.5,
  terminalSize: 13,
  terminalScreenReader: false,
  notifyQuestions: false,
};
const SIZES = { min: 11, max: 18 };

function load(): Preferences {
  try {
    return parsePreferences(JSON.parse(window.localStorage.getItem(KEY) ?? '{}'));
  } catch {
    return { ...DEFAULTS };
  }
}

/** What is stored, where it is valid; the default of everything else. */
export function parsePreferences(stored: unknown): Preferences {
  const given = typeof stored === 'object' && stored !== null ? (stored as Record<string, unknown>) : {};
  const oneOf = <T extends string>(name: keyof Preferences, values: readonly T[]): T =>
    values.find((value) => value === given[name]) ?? (DEFAULTS[name] as T);
  const flag = (name: keyof Preferences): boolean =>
    typeof given[name] === 'boolean' ? (given[name] as boolean) : (DEFAULTS[name] as boolean);
  const size = (name: 'logSize' | 'terminalSize'): number => {
    const value = given[name];
    const valid = typeof value === 'number' && value >= SIZES.min && value <= SIZES.max;
    return valid ? value : DEFAULTS[name];
  };
  const language = given['language'];
  return {
    theme: oneOf('theme', ['system', 'light', 'dark']),
    language: typeof language === 'string' && isLanguage(language) ? language : null,
    density: oneOf('density', ['comfortable', 'compact']),
    utc: flag('utc'),
    singleKeys: flag('singleKeys'),
    announceLines: flag('announceLines'),
    logWrap: flag('logWrap'),
    logColours: flag('logColours'),
    logTime: oneOf('logTime', ['off', 'clock', 'elapsed']),
    logSize: size('logSize'),
    terminalSize: size('terminalSize'),
    terminalScreenReader: flag('terminalScreenReader'),
    notifyQuestions: flag('notifyQuestions'),
  };
}

/** The choices; writing to one stores it. */
export const preferences: Preferences = $state(load());

/** Stores changes, and shows the theme. Called once, within an effect root. */
export function keepPreferences(): void {
  $effect(() => {
    const text = JSON.stringify(preferences);
    try {
      window.localStorage.setItem(KEY, text);
    } catch {
      // A browser that stores nothing: the choice holds until the page is closed.
    }
  });
  $effect(() => {
    const media = window.matchMedia('(prefers-color-scheme: dark)');
    const apply = () => {
      const dark = preferences.theme === 'dark' || (preferences.theme === 'system' && media.matches);
      document.documentElement.dataset['theme'] = dark ? 'dark' : 'light';
    };
    apply();
    media.addEventListener('change', apply);
    return () => media.removeEventListener('change', apply);
  });
}
