/** The parts of the page beside the output; pure. */

export type SectionName = 'output' | 'overview' | 'env' | 'events' | 'resources';

/** What the address says is shown: beside the output it is the overview, in a narrow window the output itself. */
export function sectionOf(section: string, isNarrow: boolean): SectionName {
  const known: SectionName[] = ['overview', 'env', 'events', 'resources'];
  const found = known.find((name) => name === section);
  return found ?? (isNarrow ? 'output' : 'overview');
}
