/** What can be jumped to, and in which order it is offered; pure. */
import type { DisplayState } from '../model/display-state';
import type { IconName } from '../ui/icons';

export interface JumpTarget {
  kind: 'page' | 'service' | 'process';
  text: string;
  address: string;
  detail?: string;
  id?: string;
  icon?: IconName;
  state?: DisplayState;
}

/** Those that have all words of the text, the best first; all in their order where there is no text. */
export function rankTargets(targets: readonly JumpTarget[], text: string): JumpTarget[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [...targets];
  return targets
    .map((target, index) => ({ target, index, score: scoreOf(target, words) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || a.index - b.index)
    .map(({ target }) => target);
}

function scoreOf(target: JumpTarget, words: string[]): number {
  const name = target.text.toLowerCase();
  const rest = `${target.id ?? ''} ${target.detail ?? ''}`.toLowerCase();
  let score = 0;
  for (const word of words) {
    const found = wordScore(name, rest, word);
    if (found === 0) return 0;
    score += found;
  }
  return score;
}

function wordScore(name: string, rest: string, word: string): number {
  if (name.startsWith(word)) return 4;
  const at = name.indexOf(word);
  if (at > 0) return /[\s/._-]/.test(name[at - 1] ?? '') ? 3 : 2;
  return rest.includes(word) ? 1 : 0;
}
