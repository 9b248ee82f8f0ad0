/** Points in time as people write them, and what the keys 0 to 5 stand for; pure. */

/** Minutes up to now, by key; 0 is all. */
export const MINUTES = [0, 1, 5, 15, 30, 60] as const;

const CLOCK = /^(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,3}))?)?$/;
const AGO = /^(\d+(?:\.\d+)?)\s*(s|m|min|h|d)$/;
const UNIT_MS: Record<string, number> = { s: 1_000, m: 60_000, min: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * The time, in milliseconds: `14:20`, `14:20:31.418`, `5m` (ago), or a date and time. A clock is that of the day of
 * `reference`, or of the day before where it would be later than that.
 */
export function parseTime(text: string, reference: number, utc: boolean): number | null {
  const given = text.trim();
  const ago = AGO.exec(given);
  if (ago) return reference - Number(ago[1]) * (UNIT_MS[ago[2] ?? ''] ?? 0);
  const clock = CLOCK.exec(given);
  if (clock) return clockOn(clock, reference, utc);
  // A date alone, or one without a zone, is in the zone of the page.
  const zoned =
    utc && /^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?$/.test(given) ? `${given}Z` : given;
  const parsed = /^\d{4}-\d{2}-\d{2}/.test(given) ? Date.parse(zoned.replace(' ', 'T')) : Number.NaN;
  return Number.isNaN(parsed) ? null : parsed;
}

const SLACK_MS = 60_000;

function clockOn(clock: RegExpExecArray, reference: number, utc: boolean): number | null {
  const [hours, minutes, seconds] = [Number(clock[1]), Number(clock[2]), Number(clock[3] ?? 0)];
  if (hours > 23 || minutes > 59 || seconds > 59) return null;
  const milliseconds = Number((clock[4] ?? '').padEnd(3, '0'));
  const at = new Date(reference);
  if (utc) at.setUTCHours(hours, minutes, seconds, milliseconds);
  else at.setHours(hours, minutes, seconds, milliseconds);
  if (at.getTime() > reference + SLACK_MS) at.setDate(at.getDate() - 1);
  return at.getTime();
}
