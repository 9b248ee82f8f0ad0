import { describe, expect, it } from 'vitest';
import { contrastOf, inkOn, readableOn } from './palette';

describe('readableOn', () => {
  it.each(['#ffffff', '#0f0e0c'])('makes every colour readable on %s', (background) => {
    for (let value = 0; value < 0x1000000; value += 0x070b0d) {
      const colour = `#${value.toString(16).padStart(6, '0')}`;
      expect(contrastOf(background, readableOn(background, colour))).toBeGreaterThanOrEqual(4.5);
    }
  });

  it('leaves a readable colour as it is', () => {
    expect(readableOn('#ffffff', '#003366')).toBe('#003366');
  });
});

describe('inkOn', () => {
  it('is black on light and white on dark', () => {
    expect(inkOn('#ffee00')).toBe('#000000');
    expect(inkOn('#101040')).toBe('#ffffff');
  });
});
