import { expect, test } from 'vitest';
import { type JumpTarget, rankTargets } from './jump-targets';

const target = (text: string, id = ''): JumpTarget => ({ kind: 'process', text, id, address: text });
const targets = [target('cargo test'), target('npm run test'), target('latest.sh'), target('make', 'k3test')];

test('beginnings first, then words, parts, ids', () => {
  expect(rankTargets(targets, 'test').map((it) => it.text)).toEqual([
    'cargo test',
    'npm run test',
    'latest.sh',
    'make',
  ]);
  expect(rankTargets(targets, 'NPM test').map((it) => it.text)).toEqual(['npm run test']);
  expect(rankTargets(targets, 'none')).toEqual([]);
  expect(rankTargets(targets, '  ')).toEqual(targets);
});
