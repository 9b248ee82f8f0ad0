/** Colours of output that are not of the palette: made readable on the background of the log. */

type Rgb = readonly [red: number, green: number, blue: number];

/** WCAG 2, level AA. */
const CONTRAST = 4.5;
const STEPS = 20;

const cache = new Map<string, string>();
const CACHED = 4_096;

/** The colour, lightened or darkened in steps until it can be read on the background; both as `#rrggbb`. */
export function readableOn(background: string, colour: string): string {
  const key = background + colour;
  let found = cache.get(key);
  if (found === undefined) {
    found = adjust(parse(background), parse(colour));
    if (cache.size >= CACHED) cache.clear();
    cache.set(key, found);
  }
  return found;
}

/** Black or white, whichever can be read better on the background. */
export function inkOn(background: string): string {
  const colour = parse(background);
  return contrast(colour, [0, 0, 0]) >= contrast(colour, [255, 255, 255]) ? '#000000' : '#ffffff';
}

export function contrastOf(a: string, b: string): number {
  return contrast(parse(a), parse(b));
}

function adjust(background: Rgb, colour: Rgb): string {
  const target: Rgb = luminance(background) > 0.18 ? [0, 0, 0] : [255, 255, 255];
  for (let step = 0; step < STEPS; step += 1) {
    const mixed = mix(colour, target, step / STEPS);
    if (contrast(background, mixed) >= CONTRAST) return format(mixed);
  }
  return format(target);
}

function mix(from: Rgb, to: Rgb, share: number): Rgb {
  const part = (index: 0 | 1 | 2) => Math.round(from[index] + (to[index] - from[index]) * share);
  return [part(0), part(1), part(2)];
}

function contrast(a: Rgb, b: Rgb): number {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return ((light ?? 0) + 0.05) / ((dark ?? 0) + 0.05);
}

function luminance([red, green, blue]: Rgb): number {
  const linear = (value: number) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
}

function parse(colour: string): Rgb {
  const value = Number.parseInt(colour.slice(1), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

function format(colour: Rgb): string {
  return `#${colour.map((part) => part.toString(16).padStart(2, '0')).join('')}`;
}
