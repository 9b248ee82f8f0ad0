/** The pages, their paths, and the parameters in them. The server has the same list. */

export type RouteName =
  | 'processes'
  | 'process'
  | 'terminals'
  | 'terminal'
  | 'services'
  | 'service'
  | 'inbox'
  | 'templates'
  | 'template'
  | 'history'
  | 'audit'
  | 'resources'
  | 'settings'
  | 'not-found';

export interface Route {
  name: RouteName;
  /** What stands in the path for `:id`, decoded; empty where the page has none. */
  id: string;
  /** The part of a page, such as the tab of a process; empty for its first. */
  section: string;
}

const PATTERNS: readonly [pattern: string, name: RouteName][] = [
  ['', 'processes'],
  ['processes', 'processes'],
  ['p/:id', 'process'],
  ['p/:id/:section', 'process'],
  ['terminals', 'terminals'],
  ['t/:id', 'terminal'],
  ['services', 'services'],
  ['services/:id', 'service'],
  ['inbox', 'inbox'],
  ['inbox/:id', 'inbox'],
  ['templates', 'templates'],
  ['templates/:id', 'template'],
  ['history', 'history'],
  ['audit', 'audit'],
  ['resources', 'resources'],
  ['settings', 'settings'],
  ['settings/:section', 'settings'],
];

/** The route of a path below the base path, without a slash in front. */
export function matchRoute(path: string): Route {
  const parts = path.replace(/\/+$/, '').split('/');
  for (const [pattern, name] of PATTERNS) {
    const found = matchPattern(pattern.split('/'), parts);
    if (found) return { name, id: found.id ?? '', section: found.section ?? '' };
  }
  return { name: 'not-found', id: '', section: '' };
}

function matchPattern(pattern: string[], parts: string[]): Record<string, string> | undefined {
  if (pattern.length !== parts.length) return undefined;
  const found: Record<string, string> = {};
  for (const [index, piece] of pattern.entries()) {
    const part = parts[index] ?? '';
    if (!piece.startsWith(':')) {
      if (piece !== part) return undefined;
    } else if (part === '') {
      return undefined;
    } else {
      found[piece.slice(1)] = decode(part);
    }
  }
  return found;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
