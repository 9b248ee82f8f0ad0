/** Output as plain text; pure. */

/** The longest line that is shown. */
const CHARACTERS = 400;

/** A line without control sequences (ECMA-48) and control characters, cut where it is very long. */
export function plainText(line: string): string {
  const plain = line
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is removed
    .replace(/\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g, '')
    // What a carriage return overwrites was not meant to stay.
    .replace(/^[\s\S]*\r(?=[^\r])/, '')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is removed
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, '');
  return plain.length <= CHARACTERS ? plain : `${plain.slice(0, CHARACTERS)}…`;
}
