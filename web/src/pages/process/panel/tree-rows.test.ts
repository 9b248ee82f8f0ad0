import { expect, it } from 'vitest';
import { treeRows } from './tree-rows';

it('has each process before its children', () => {
  const rows = treeRows([
    { pid: 5, parent: 1, name: 'sh' },
    { pid: 9, parent: 7, name: 'cc' },
    { pid: 7, parent: 5, name: 'make' },
    { pid: 8, parent: 5, name: 'tee' },
  ]);
  expect(rows.map((row) => [row.name, row.depth])).toEqual([
    ['sh', 0],
    ['make', 1],
    ['cc', 2],
    ['tee', 1],
  ]);
});

it('ends where a process is its own ancestor', () => {
  expect(
    treeRows([
      { pid: 1, parent: 2, name: 'a' },
      { pid: 2, parent: 1, name: 'b' },
    ]),
  ).toHaveLength(2);
});
