/** Finds the matches of an expression in lines, beside the page: an expression that takes for ever is ended with it. */

export interface HighlightRequest {
  id: number;
  source: string;
  ignoreCase: boolean;
  texts: string[];
}

export interface HighlightAnswer {
  id: number;
  /** Of each text: where matches begin and end, one after the other. */
  spans: number[][];
}

const SPANS = 200;

function compile(source: string, ignoreCase: boolean): RegExp | null {
  const flags = ignoreCase ? 'gi' : 'g';
  for (const unicode of ['u', '']) {
    try {
      return new RegExp(source, flags + unicode);
    } catch {
      // The server's expressions are others in places; then nothing is marked.
    }
  }
  return null;
}

function findAll(expression: RegExp, text: string): number[] {
  const spans: number[] = [];
  for (const match of text.matchAll(expression)) {
    if (match[0] !== '') spans.push(match.index, match.index + match[0].length);
    if (spans.length >= SPANS * 2) break;
  }
  return spans;
}

addEventListener('message', ({ data }: MessageEvent<HighlightRequest>) => {
  const expression = compile(data.source, data.ignoreCase);
  const spans = data.texts.map((text) => (expression ? findAll(expression, text) : []));
  const answer: HighlightAnswer = { id: data.id, spans };
  postMessage(answer);
});
