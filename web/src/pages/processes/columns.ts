/** Which columns a table of a width has room for; pure. */

export interface ShownColumns {
  description: boolean;
  directory: boolean;
  labels: boolean;
  owner: boolean;
  started: boolean;
  /** The plot beside what is used. */
  plot: boolean;
}

export interface ColumnNeeds {
  /** Pixels. */
  width: number;
  /** Whether any process has a label. */
  hasLabels: boolean;
  /** Whether there are several owners. */
  hasOwners: boolean;
}

/** Below this width rows are cards, which have no columns. */
const CARDS = 704;

/** The command keeps the widest column: others give way to it as the table gets narrower. */
export function shownColumns({ width, hasLabels, hasOwners }: ColumnNeeds): ShownColumns {
  return {
    description: width >= 2_200,
    directory: width >= 1_500,
    labels: width >= 1_180 && hasLabels,
    owner: width >= 980 && hasOwners,
    started: width >= 860,
    plot: width >= 1_180 || width < CARDS,
  };
}

/** The widths of the columns, as `grid-template-columns` has them. */
export function columnWidths(shown: ShownColumns, width: number): string {
  const wide = width >= 1_500;
  const tracks: [boolean, string][] = [
    [true, '46px 126px minmax(0, 1fr)'],
    [shown.description, 'minmax(0, 0.6fr)'],
    [shown.directory, 'minmax(0, 0.5fr)'],
    [shown.labels, wide ? '190px' : '124px'],
    [shown.owner, wide ? '140px' : '104px'],
    [shown.started, wide ? '110px' : '90px'],
    [true, '82px'],
    [true, shown.plot ? '132px' : '82px'],
    [true, '76px 124px'],
  ];
  return tracks.flatMap(([isShown, track]) => (isShown ? track : [])).join(' ');
}
