import { expect, test } from 'vitest';
import { columnWidths, shownColumns } from './columns';

/** Pixels of the columns that have a fixed width. */
function fixedWidth(tracks: string): number {
  const flexible = tracks.replace(/minmax\([^)]*\)/g, '');
  return flexible
    .split(' ')
    .filter(Boolean)
    .reduce((sum, track) => sum + Number(track.replace('px', '')), 0);
}

test.each([720, 860, 980, 1_072, 1_180, 1_232, 1_500, 1_712, 2_200, 3_632])(
  'at %d pixels the command has the widest column',
  (width) => {
    const shown = shownColumns({ width, hasLabels: true, hasOwners: true });
    const tracks = columnWidths(shown, width);
    const shares = 1 + (shown.description ? 0.6 : 0) + (shown.directory ? 0.5 : 0);
    const command = (width - fixedWidth(tracks)) / shares;
    const others = [...tracks.matchAll(/(\d+)px/g)].map(([, pixels]) => Number(pixels));
    expect(command).toBeGreaterThan(Math.max(...others));
  },
);

test('columns without anything in them give their room away', () => {
  const shown = shownColumns({ width: 1_400, hasLabels: false, hasOwners: false });
  expect(shown).toMatchObject({ labels: false, owner: false, started: true, plot: true, directory: false });
});
