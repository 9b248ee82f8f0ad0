/** How the rows of the log look, of what the person and the address say. */

import { BASE_PATH } from '../../../app/base-path';
import type { LineTime } from '../../../app/preferences.svelte';
import { formatBytes } from '../../../format/duration';
import { dayOf, formatClock, type TimeStyle } from '../../../format/time';
import { t } from '../../../i18n/index.svelte';
import type { LogLine } from './line';
import type { LogModel, Marker } from './log-model.svelte';
import type { ViewOptions } from './log-view';
import type { RowTexts } from './row-content';
import type { Mark } from './row-specs';

export interface Look {
  rowHeight: number;
  wraps: boolean;
  time: LineTime;
  style: TimeStyle;
  colours: boolean;
  /** Pixels of the type. */
  size: number;
  /** Counts what makes every row be built again. */
  redraws: number;
  markers: readonly Marker[];
  damagedFrom: number | undefined;
  isFinished: boolean;
}

export function viewOptions(model: LogModel, look: Look): ViewOptions {
  const { style } = look;
  const formatNumber = (number: number) => number.toLocaleString(style.language);
  const marks = new Map(look.markers.map((marker) => [marker.after, marker]));
  return {
    rowHeight: look.rowHeight,
    wraps: look.wraps,
    hasCursor: !look.isFinished,
    version: JSON.stringify([look.time, style, look.colours, look.size, look.redraws]),
    flagsOf: (line) => model.flagsOf(line),
    marksBefore: (line, previous) => [
      ...dayMark(line, previous, style),
      ...markerMark(marks.get(line.number - 1), style),
    ],
    marksAfter: () => endMarks(model, look, marks.get(model.ended)),
    lostText: (lost, before, after) => {
      const size = formatBytes(lost.bytes);
      if (before === null || before + 1 >= after) return t('process.gap', { size });
      return t('process.gap_lines', { size, from: formatNumber(before + 1), to: formatNumber(after - 1) });
    },
    rowStyle: {
      time: look.time,
      timeStyle: style,
      startedAt: model.subject.startedAt,
      colours: look.colours,
      background: logBackground(),
      texts: rowTexts(),
      formatNumber,
      hrefOf: (line) => `${BASE_PATH}p/${encodeURIComponent(model.id)}?line=${line}`,
      matchesOf: (_, text) => model.matchesOf(text),
    },
  };
}

function logBackground(): string {
  const colour = getComputedStyle(document.documentElement).getPropertyValue('--log').trim();
  return /^#[\da-f]{6}$/i.test(colour) ? colour : '#ffffff';
}

function rowTexts(): RowTexts {
  return {
    stderr: t('process.stream_stderr'),
    stdin: t('process.stream_stdin'),
    hex: t('process.hex_view'),
    redraws: (n) => t('process.redraws', { n }),
    cut: (size) => t('process.line_cut', { size }),
    skipped: (size) => t('process.line_skipped', { size }),
    opens: (address) => t('process.link_opens', { address }),
    line: (number) => t('process.line', { line: number }),
  };
}

/** The day, where it is another than that of the line above. */
function dayMark(line: LogLine, previous: LogLine | null, style: TimeStyle): Mark[] {
  if (previous === null || sameDay(line.at, previous.at, style)) return [];
  return [{ key: `d${line.number}`, className: 'log-day', text: dayOf(new Date(line.at), style) }];
}

/** Whether two times are on one day; told without a formatter where they are close. */
function sameDay(a: number, b: number, style: TimeStyle): boolean {
  // Zones differ from UTC by quarters of an hour.
  if (Math.floor(a / 900_000) === Math.floor(b / 900_000)) return true;
  return dayOf(new Date(a), style) === dayOf(new Date(b), style);
}

function markerMark(marker: Marker | undefined, style: TimeStyle): Mark[] {
  if (!marker) return [];
  const text = t('process.marker', { time: formatClock(new Date(marker.at), style) });
  return [{ key: `k${marker.after}`, className: 'log-marker', text }];
}

function endMarks(model: LogModel, look: Look, marker: Marker | undefined): Mark[] {
  const marks = markerMark(marker, look.style);
  const lost = model.source.gapAfter;
  if (lost)
    marks.push({
      key: 'gap-after',
      className: 'log-gap',
      text: t('process.gap', { size: formatBytes(lost.bytes) }),
    });
  if (look.damagedFrom !== undefined) {
    const text = t('process.damaged', { n: look.damagedFrom });
    marks.push({ key: 'damage', className: 'log-gap log-damage', text });
  }
  return marks;
}
