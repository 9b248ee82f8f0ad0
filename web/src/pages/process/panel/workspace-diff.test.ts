import { expect, test } from 'vitest';
import { diffOfPath, diffQuery } from './workspace-diff';

const bytes = (text: string) => ({ base64: btoa(text) });
const named = (name: string) => `diff --git "a/${name}" "b/${name}"\nnew file mode 100644\n--- /dev/null\n`;

test('a path goes into the query as it is, and none asks for all', () => {
  expect(diffQuery('a b/ü.txt')).toEqual({ path: ['a b/ü.txt'] });
  expect(diffQuery(null)).toEqual({});
});

test('for a path that is not UTF-8, the nearest directory above it that is UTF-8', () => {
  expect(diffQuery(bytes('a/b/\xff'))).toMatchObject({ path: ['a/b'] });
  expect(diffQuery(bytes('a/\xff/b/c'))).toMatchObject({ path: ['a'] });
  expect(diffQuery(bytes('\xff/b'))).not.toHaveProperty('path');
});

test('of what is below it, only the path itself is shown', () => {
  const first = `${named('x\\377')}+diff --git "a/x\\376" "b/x\\376"\n`;
  const second = `${named('x\\376')}+two\n`;
  const diff = first + second;
  expect(diffOfPath({ diff, truncated: true }, bytes('x\xff'))).toEqual({ diff: first, truncated: false });
  expect(diffOfPath({ diff, truncated: true }, bytes('x\xfe'))).toEqual({ diff: second, truncated: true });
  expect(diffOfPath({ diff, truncated: false }, bytes('y\xfe'))).toEqual({ diff: '', truncated: false });
  expect(diffOfPath({ diff, truncated: false }, null).diff).toBe(diff);
  const quoted = named('\\"\\\\\\n\\t\\007\\200');
  expect(diffOfPath({ diff: quoted, truncated: false }, bytes('"\\\n\t\x07\x80')).diff).toBe(quoted);
});
