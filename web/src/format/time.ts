/** Points in time, in the zone and language that are chosen. */

export interface TimeStyle {
  language: string;
  utc: boolean;
}

const formats = new Map<string, Intl.DateTimeFormat>();

function format(style: TimeStyle, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const all: Intl.DateTimeFormatOptions = style.utc ? { ...options, timeZone: 'UTC' } : options;
  const key = style.language + JSON.stringify(all);
  let found = formats.get(key);
  if (!found) {
    found = new Intl.DateTimeFormat(style.language, all);
    formats.set(key, found);
  }
  return found;
}

/** `14:20:31`, with milliseconds where they are asked for. */
export function formatClock(at: Date, style: TimeStyle, milliseconds = false): string {
  return format(style, {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
    ...(milliseconds ? { fractionalSecondDigits: 3 as const } : {}),
  }).format(at);
}

/** The clock today, `Wed 14:20` within six days, the date before. */
export function formatListTime(at: Date, now: Date, style: TimeStyle): string {
  if (dayOf(at, style) === dayOf(now, style)) return formatClock(at, style);
  const age = now.getTime() - at.getTime();
  if (age >= 0 && age < 6 * 86_400_000) {
    return format(style, { weekday: 'short', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }).format(
      at,
    );
  }
  return format(style, { year: 'numeric', month: '2-digit', day: '2-digit' }).format(at);
}

/** The day, for the rule between lines of different days and for comparisons. */
export function dayOf(at: Date, style: TimeStyle): string {
  return format(style, { weekday: 'short', year: 'numeric', month: 'short', day: 'numeric' }).format(at);
}

/** Day, clock and offset: what hover and focus show. */
export function formatFull(at: Date, style: TimeStyle): string {
  return format(style, {
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    fractionalSecondDigits: 3,
    hourCycle: 'h23',
    timeZoneName: 'longOffset',
  }).format(at);
}

const relativeFormats = new Map<string, Intl.RelativeTimeFormat>();

function relativeFormat(language: string): Intl.RelativeTimeFormat {
  let found = relativeFormats.get(language);
  if (!found) {
    found = new Intl.RelativeTimeFormat(language, { numeric: 'auto' });
    relativeFormats.set(language, found);
  }
  return found;
}

/** `3 minutes ago`, in words of the language. */
export function formatAgo(at: Date, now: Date, language: string): string {
  const seconds = Math.round((at.getTime() - now.getTime()) / 1000);
  const units: [Intl.RelativeTimeFormatUnit, number][] = [
    ['day', 86_400],
    ['hour', 3_600],
    ['minute', 60],
  ];
  const relative = relativeFormat(language);
  for (const [unit, size] of units) {
    if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit);
  }
  return relative.format(seconds, 'second');
}
