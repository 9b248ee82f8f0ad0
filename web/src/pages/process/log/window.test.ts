import { describe, expect, it } from 'vitest';
import { anchorAt, type Extent, isJump, SPACER_LIMIT, scrollTopOf, spacerHeight } from './window';

const extent = (last: number, first = 1): Extent => ({ first, last, rowHeight: 20, viewHeight: 600 });

describe('the scrollbar', () => {
  it('is exact up to 800,000 lines', () => {
    expect(spacerHeight(extent(800_000))).toBe(16_000_000);
    expect(scrollTopOf(extent(800_000), { line: 400_001, px: -7 })).toBe(8_000_007);
    expect(anchorAt(extent(800_000), 8_000_007)).toEqual({ line: 400_001, px: -7 });
  });

  it('stands for lines above that, and still reaches both ends', () => {
    const million = extent(1_000_000);
    expect(spacerHeight(million)).toBe(SPACER_LIMIT);
    expect(anchorAt(million, 0)).toEqual({ line: 1, px: 0 });
    const end = anchorAt(million, SPACER_LIMIT - 600);
    expect(end.line).toBe(1_000_000 - 29);
    expect(scrollTopOf(million, end)).toBeCloseTo(SPACER_LIMIT - 600, 3);
    expect(anchorAt(million, SPACER_LIMIT / 2).line / 500_000).toBeCloseTo(1, 3);
  });

  it('gives the position of an anchor back', () => {
    for (const last of [10, 1_000, 800_001, 1_000_000, 123_456_789]) {
      for (const share of [0, 0.1, 0.5, 0.999, 1]) {
        const size = extent(last);
        const top = (spacerHeight(size) - size.viewHeight) * share;
        expect(scrollTopOf(size, anchorAt(size, top))).toBeCloseTo(top, 1);
      }
    }
  });

  it('begins with the oldest line that is kept', () => {
    expect(anchorAt(extent(1_000, 401), 0).line).toBe(401);
    expect(spacerHeight(extent(1_000, 401))).toBe(12_000);
  });

  it('is as high as the view where there is little or nothing', () => {
    expect(spacerHeight(extent(0))).toBe(600);
    expect(scrollTopOf(extent(0), { line: 1, px: 0 })).toBe(0);
    expect(scrollTopOf(extent(5), { line: 3, px: 0 })).toBe(0);
  });

  it('tells a drag of the thumb from a movement', () => {
    expect(isJump(extent(1e6), 1_201)).toBe(true);
    expect(isJump(extent(1e6), -120)).toBe(false);
  });
});
