import { expect, test } from 'vitest';
import { readPages } from './pages';

/** The page at a cursor, of so many. */
const of = (count: number) => async (cursor: string | undefined) => {
  const at = Number(cursor ?? 0);
  return { at, ...(at + 1 < count ? { next: String(at + 1) } : {}) };
};

test('all pages are read, in their order', async () => {
  const { pages, isCut } = await readPages(of(3), 10);
  expect(pages.map(({ at }) => at)).toEqual([0, 1, 2]);
  expect(isCut).toBe(false);
});

test('no more than so many, and whether there are more', async () => {
  const cut = await readPages(of(3), 2);
  expect(cut.pages).toHaveLength(2);
  expect(cut.isCut).toBe(true);
  expect((await readPages(of(2), 2)).isCut).toBe(false);
});
