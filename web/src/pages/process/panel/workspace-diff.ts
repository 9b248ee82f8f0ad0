/** Which diff of an overlay is asked for; pure. */
import type { ByteString } from '../../../api/types';

/** The path itself, and all of them for `null`. A path that is not UTF-8 has a parameter of its own. */
export function diffQuery(path: ByteString | null): { path?: string[]; path_base64?: string[] } {
  if (path === null) return {};
  return typeof path === 'string' ? { path: [path] } : { path_base64: [path.base64] };
}
