import { describe, expect, it } from 'vitest';
import { anchorAt, type Extent, isJump, placeRows, SPACER_LIMIT, scrollTopOf, spacerHeight } from './window';

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

describe('placeRows', () => {
  const rows = (height: number, hasStart: boolean, hasEnd: boolean) => ({ height, hasStart, hasEnd });

  it('leaves rows where they should be, and tells what is missing', () => {
    expect(placeRows(-50, rows(800, false, false), 600)).toEqual({
      top: -50,
      roomAbove: -50,
      roomBelow: -150,
    });
    expect(placeRows(30, rows(500, false, false), 600)).toEqual({ top: 30, roomAbove: 30, roomBelow: 70 });
  });

  it('has the last row at the lower edge and few rows at the upper one', () => {
    expect(placeRows(-300, rows(800, false, true), 600).top).toBe(-200);
    expect(placeRows(100, rows(200, true, true), 600).top).toBe(0);
    expect(placeRows(-100, rows(200, true, true), 600).top).toBe(0);
  });
});
