/** The drawing of a plot by uPlot. Loaded with the first plot that is shown. */
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { formatClock, type TimeStyle } from '../format/time';
import {
  axisTop,
  drawnLimits,
  highest,
  type PlotColour,
  type PlotLimit,
  type PlotRange,
  type PlotSeries,
} from './plot';

export interface ChartContent {
  /** Milliseconds, ascending. */
  times: readonly number[];
  series: readonly PlotSeries[];
  range: PlotRange;
  limits: readonly PlotLimit[];
  /** The value axis reaches at least so far. */
  least: number;
  format: (value: number) => string;
  time: TimeStyle;
}

export interface ChartOptions {
  height: number;
  /** Plots with the same key share their cursor. */
  syncKey: string | null;
  timeAxis: boolean;
  /** The index of the time under the cursor. */
  onhover: (index: number | null) => void;
}

export interface Chart {
  update(content: ChartContent): void;
  /** Puts the cursor on a time, also in the plots that share it; `null` takes it away. */
  pointAt(index: number | null): void;
  /** Draws again in the colours of now. */
  redraw(): void;
  destroy(): void;
}

/** The room for the values beside the plot, and at its other end, in pixels. */
export const AXIS_WIDTH = 56;
export const END_ROOM = 8;
/** The room for the notches above it (and for half a value below it), and for the times below it. */
export const NOTCH_ROOM = 10;
const TIME_HEIGHT = 28;
/** A time needs so much room on both sides of its place. */
const HALF_TIME = 28;
const HOUR_MS = 3_600_000;

/** The size of the labels, as `--size-micro` is. */
const FONT = '11px "Inter Variable", system-ui, sans-serif';

export function createChart(host: HTMLElement, options: ChartOptions, first: ChartContent): Chart {
  let content = first;
  const colour = (name: PlotColour | 'line' | 'ink2') =>
    getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const plot = new uPlot(
    chartOptions(host, options, () => content, colour),
    dataOf(content),
    host,
  );
  // The third parameter, which tells the plots that share the cursor, is missing in the types.
  const setCursor: (place: { left: number; top: number }, fire: boolean, share: boolean) => void =
    plot.setCursor;
  const resized = new ResizeObserver(() => {
    const width = host.clientWidth;
    if (width > 0) plot.setSize({ width, height: options.height });
  });
  resized.observe(host);
  return {
    update(next) {
      const changed = next.series.length !== content.series.length || labelsOf(next) !== labelsOf(content);
      content = next;
      if (changed) replaceSeries(plot, () => content, colour);
      plot.setData(dataOf(content));
    },
    pointAt(index) {
      const at = index === null ? undefined : content.times[index];
      const place =
        at === undefined
          ? { left: -10, top: -10 }
          : { left: plot.valToPos(at, 'x'), top: plot.over.clientHeight / 2 };
      setCursor(place, true, true);
    },
    redraw: () => plot.redraw(false, true),
    destroy() {
      resized.disconnect();
      plot.destroy();
    },
  };
}

type Colour = (name: PlotColour | 'line' | 'ink2') => string;

function labelsOf({ series }: ChartContent): string {
  return series.map((one) => `${one.label} ${one.colour}`).join('\n');
}

function dataOf({ times, series }: ChartContent): uPlot.AlignedData {
  return [times, ...series.map((one) => one.values)] as uPlot.AlignedData;
}

function chartOptions(
  host: HTMLElement,
  options: ChartOptions,
  content: () => ChartContent,
  colour: Colour,
): uPlot.Options {
  return {
    width: Math.max(1, host.clientWidth),
    height: options.height,
    ms: 1,
    padding: [NOTCH_ROOM, END_ROOM, options.timeAxis ? 0 : NOTCH_ROOM, 0],
    legend: { show: false },
    cursor: {
      y: false,
      drag: { x: false, y: false, setScale: false },
      points: { size: 7 },
      ...(options.syncKey === null ? {} : { sync: { key: options.syncKey, setSeries: false } }),
    },
    tzDate: (ms) => (content().time.utc ? uPlot.tzDate(new Date(ms), 'Etc/UTC') : new Date(ms)),
    scales: {
      x: { time: true, range: () => [...content().range] },
      y: { range: () => [0, axisTop(content().series, content().limits, content().least)] },
    },
    axes: [timeAxis(options.timeAxis, content, colour), valueAxis(content, colour)],
    series: [{}, ...content().series.map((_, index) => seriesOptions(index, content, colour))],
    hooks: {
      draw: [(plot) => drawLimits(plot, content(), colour)],
      setCursor: [
        (plot) =>
          options.onhover(
            plot.cursor.left === undefined || plot.cursor.left < 0 ? null : (plot.cursor.idx ?? null),
          ),
      ],
    },
  };
}

function replaceSeries(plot: uPlot, content: () => ChartContent, colour: Colour): void {
  while (plot.series.length > 1) plot.delSeries(plot.series.length - 1);
  for (const index of content().series.keys())
    plot.addSeries(seriesOptions(index, content, colour), index + 1);
}

function seriesOptions(index: number, content: () => ChartContent, colour: Colour): uPlot.Series {
  const series = content().series[index];
  const stroke = () => colour(content().series[index]?.colour ?? 'field');
  return {
    label: series?.label ?? '',
    width: 1.5,
    stroke,
    ...(series?.filled ? { fill: () => tint(stroke()) } : {}),
    points: { show: false },
    spanGaps: false,
  };
}

/** A colour of the theme (`#rrggbb`) at 14 %. */
function tint(colour: string): string {
  return /^#[0-9a-f]{6}$/i.test(colour) ? `${colour}24` : 'transparent';
}

function timeAxis(shown: boolean, content: () => ChartContent, colour: Colour): uPlot.Axis {
  const seconds = () => content().range[1] - content().range[0] < HOUR_MS / 2;
  return {
    stroke: () => colour('ink3'),
    font: FONT,
    size: shown ? TIME_HEIGHT : 0,
    gap: 8,
    space: 72,
    values: (plot, splits) =>
      splits.map((at) => {
        const room = plot.over.clientWidth + END_ROOM - plot.valToPos(at, 'x');
        if (!shown || room < HALF_TIME) return '';
        return formatClock(new Date(at), content().time).slice(0, seconds() ? undefined : 5);
      }),
    grid: { stroke: () => colour('line'), width: 1 },
    ticks: { show: false },
  };
}

function valueAxis(content: () => ChartContent, colour: Colour): uPlot.Axis {
  return {
    stroke: () => colour('ink3'),
    font: FONT,
    size: AXIS_WIDTH,
    gap: 8,
    space: 30,
    values: (_, splits) => splits.map((value) => content().format(value)),
    grid: { stroke: () => colour('line'), width: 1 },
    ticks: { show: false },
  };
}

/** Draws each limit as a line of dashes with its name. */
function drawLimits(plot: uPlot, content: ChartContent, colour: Colour): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = colour('failed');
  ctx.fillStyle = colour('ink2');
  ctx.lineWidth = uPlot.pxRatio;
  ctx.font = FONT.replace('11px', `${11 * uPlot.pxRatio}px`);
  ctx.textAlign = 'right';
  ctx.textBaseline = 'bottom';
  for (const limit of drawnLimits(content.limits, highest(content.series))) {
    const y = Math.round(plot.valToPos(limit.value, 'y', true)) + 0.5;
    ctx.setLineDash([4 * uPlot.pxRatio, 4 * uPlot.pxRatio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.fillText(limit.label, bbox.left + bbox.width - 4 * uPlot.pxRatio, y - 2 * uPlot.pxRatio);
  }
  ctx.restore();
}
