/** Durations and sizes, short and of stable width. */

/** `84 ms`, `2.8 s`, `3m 12s`, `2h 21m`, `4d 3h`. */
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms) || ms < 0) return '–';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${pad(seconds % 60)}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)}h ${pad(minutes % 60)}m`;
  const hours = Math.floor(minutes / 60);
  return `${Math.floor(hours / 24)}d ${hours % 24}h`;
}

/** The time of something that goes on: whole seconds, so that digits do not dance. */
export function formatAge(ms: number): string {
  return ms < 59_950 ? `${Math.max(0, Math.floor(ms / 1000))} s` : formatDuration(ms);
}

const UNIT_MS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The milliseconds of `90`, `90s`, `15m` or `1h 30m`; `null` where a text is no duration. */
export function parseDuration(text: string): number | null {
  const trimmed = text.trim().toLowerCase();
  if (/^\d+(\.\d+)?$/.test(trimmed)) return Math.round(Number(trimmed) * 1_000);
  if (!/^(\d+(\.\d+)?\s*(ms|s|m|h|d)\s*)+$/.test(trimmed)) return null;
  let total = 0;
  for (const [, amount, unit] of trimmed.matchAll(/(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)/g)) {
    total += Number(amount) * (UNIT_MS[unit ?? ''] ?? 0);
  }
  return Math.round(total);
}

function pad(value: number): string {
  return String(value).padStart(2, '0');
}

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];

/** `212 MB`, `1.9 GB`: decimal units, two digits at least. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const digits = unit > 0 && value < 9.95 ? 1 : 0;
  return `${value.toFixed(digits)} ${UNITS[unit]}`;
}

/** `742 %` of one processor; below ten with one digit. */
export function formatPercent(percent: number): string {
  const digits = percent > 0 && percent < 9.95 ? 1 : 0;
  return `${percent.toFixed(digits)} %`;
}
