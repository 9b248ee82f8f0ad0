/** What is wrong with an expression, and where; pure. */

export interface PatternProblem {
  message: string;
  /** The index of the character that is wrong; `null` where that is not told. */
  position: number | null;
}

/** Reads the message of the server: `parameter 'q' is '(': unclosed group at position 0; allowed: …`. */
export function patternProblem(message: string): PatternProblem {
  const cause = /^parameter 'q' is '[\s\S]*': ([\s\S]*); allowed: /.exec(message)?.[1] ?? message;
  const place = /^([\s\S]*) at position (\d+)$/.exec(cause);
  if (!place) return { message: cause, position: null };
  return { message: place[1] ?? cause, position: Number(place[2]) };
}
