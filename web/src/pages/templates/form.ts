/** From the parameters of a template to a form, and from the form to a request; pure. */
import type { CommandTemplate, TemplateParameter } from '../../api/types';
import type { Values } from './preview';

/** What the fields show at first: the defaults. */
export function initialValues(template: CommandTemplate): Values {
  return Object.fromEntries(
    Object.entries(template.parameters).map(([name, parameter]) => [name, initialValue(parameter)]),
  );
}

function initialValue({ type, default: preset }: TemplateParameter): string | boolean {
  if (type === 'boolean') return preset === true || preset === 'true';
  return preset === undefined || preset === null ? '' : String(preset);
}

/** What the fields show when the template has changed: what was entered, where that is still a value of it. */
export function keptValues(template: CommandTemplate, values: Values): Values {
  return Object.fromEntries(
    Object.entries(initialValues(template)).map(([name, initial]) => {
      const entered = values[name];
      return [name, typeof entered === typeof initial && entered !== undefined ? entered : initial];
    }),
  );
}

/** Whether two readings of a template make different commands, or from different parameters. */
export function makesAnother(template: CommandTemplate, other: CommandTemplate): boolean {
  const made = ({ command, args_template: args, parameters }: CommandTemplate) =>
    JSON.stringify([command, args, Object.entries(parameters).sort(([a], [b]) => (a < b ? -1 : 1))]);
  return made(template) !== made(other);
}

/** The values of the request: what is needed and empty is left out, so that the daemon names it. */
export function requestValues(template: CommandTemplate, values: Values): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(values).filter(
      ([name, value]) =>
        value !== '' || !(template.parameters[name]?.required || isChosen(template.parameters[name])),
    ),
  );
}

/** Whether an empty text is no value of it. */
function isChosen(parameter: TemplateParameter | undefined): boolean {
  return parameter?.type === 'integer' || parameter?.type === 'choice' || parameter?.type === 'path';
}

export interface Refusal {
  /** What is wrong with parameters of the template, by name. */
  fields: Record<string, string>;
  /** What is wrong besides. */
  rest: string | null;
}

/** Sorts what the daemon says of parameters by their names. */
export function refusalOf(message: string, template: CommandTemplate): Refusal {
  const fields: Record<string, string> = {};
  const others: string[] = [];
  // Each begins with its name, since values may hold any text.
  const body = message.replace(/^template '[^']*': /, '');
  for (const part of body.split(/; (?=parameter ')/)) {
    const [, name, text] = /^parameter '([^']*)' ([\s\S]*)$/.exec(part) ?? [];
    if (name !== undefined && text !== undefined && Object.hasOwn(template.parameters, name))
      fields[name] = text;
    else others.push(part);
  }
  return { fields, rest: others.length > 0 ? others.join('; ') : null };
}

export interface TemplateGroup {
  category: string;
  templates: CommandTemplate[];
}

/** By category, in the order of the alphabet; those that have all words of a text. */
export function templateGroups(templates: readonly CommandTemplate[], text: string): TemplateGroup[] {
  const words = text.toLowerCase().split(/\s+/);
  const groups = new Map<string, CommandTemplate[]>();
  for (const template of templates) {
    const all = [template.id, template.name, template.description, template.category, template.command]
      .join(' ')
      .toLowerCase();
    if (!words.every((word) => all.includes(word))) continue;
    groups.set(template.category, [...(groups.get(template.category) ?? []), template]);
  }
  return [...groups]
    .map(([category, found]) => ({ category, templates: found.sort((a, b) => a.name.localeCompare(b.name)) }))
    .sort((a, b) => a.category.localeCompare(b.category));
}
