import { expect, it } from 'vitest';
import { patternProblem } from './search-problem';

it('finds the cause and the place', () => {
  const message = "parameter 'q' is 'a': (': unclosed group at position 4; allowed: a Perl-style expression";
  expect(patternProblem(message)).toEqual({ message: 'unclosed group', position: 4 });
});

it('leaves any other message as it is', () => {
  expect(patternProblem('the daemon ends')).toEqual({ message: 'the daemon ends', position: null });
});
