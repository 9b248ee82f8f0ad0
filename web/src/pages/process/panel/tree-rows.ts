/** Processes as a tree; pure. */

export interface Member {
  pid: number;
  parent: number;
  name: string;
}

export interface TreeRow extends Member {
  depth: number;
}

/** Deeper ones are shown at this depth. */
const DEPTH = 8;

/** Each process before its children, in the order given; one whose parent is not among them is at the top. */
export function treeRows(members: readonly Member[]): TreeRow[] {
  const known = new Set(members.map((member) => member.pid));
  const rows: TreeRow[] = [];
  const seen = new Set<number>();
  const add = (member: Member, depth: number) => {
    if (seen.has(member.pid)) return;
    seen.add(member.pid);
    rows.push({ ...member, depth: Math.min(depth, DEPTH) });
    for (const child of members) if (child.parent === member.pid) add(child, depth + 1);
  };
  for (const member of members) if (!known.has(member.parent)) add(member, 0);
  for (const member of members) add(member, 0);
  return rows;
}
