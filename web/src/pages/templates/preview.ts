/** The command that a template makes, as it will be run; pure. */
import type { CommandTemplate } from '../../api/types';

/** A part of an argument: text, or a parameter that has no value yet. */
export type PreviewPart = { text: string } | { missing: string };

export type Values = Record<string, string | boolean>;

const PIECE = /\{\{|\}\}|\{([^{}]+)\}|[^{}]+/g;

/** The parameters in the order in which the command has them: the form has the same. */
export function parameterOrder(template: CommandTemplate): string[] {
  const named = template.args_template.flatMap((argument) =>
    [...argument.matchAll(PIECE)].map((match) => match[1]).filter((name) => name !== undefined),
  );
  const known = Object.keys(template.parameters);
  const ordered = [...new Set(named)].filter((name) => known.includes(name));
  return [...ordered, ...known.filter((name) => !ordered.includes(name))];
}

/** The program and its arguments, each quoted where a shell would need it; no shell is involved. */
export function previewOf(template: CommandTemplate, values: Values): PreviewPart[][] {
  return [
    [{ text: quoted(template.command) }],
    ...template.args_template.map((argument) => argumentParts(argument, template, values)),
  ];
}

function argumentParts(argument: string, template: CommandTemplate, values: Values): PreviewPart[] {
  const parts: PreviewPart[] = [];
  for (const [piece, name] of argument.matchAll(PIECE)) {
    if (piece === '{{' || piece === '}}') parts.push({ text: piece.charAt(0) });
    else if (name === undefined) parts.push({ text: piece });
    else parts.push(valuePart(name, template, values));
  }
  if (parts.some((part) => 'missing' in part)) return parts;
  return [{ text: quoted(parts.map((part) => ('text' in part ? part.text : '')).join('')) }];
}

function valuePart(name: string, template: CommandTemplate, values: Values): PreviewPart {
  const value = values[name];
  if (value === undefined || (value === '' && template.parameters[name]?.required)) return { missing: name };
  return { text: String(value) };
}

/** A word as it would be written for a shell. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** The whole line, with names in angle brackets where values are missing. */
export function previewText(parts: readonly PreviewPart[][]): string {
  return parts
    .map((argument) => argument.map((part) => ('text' in part ? part.text : `<${part.missing}>`)).join(''))
    .join(' ');
}
