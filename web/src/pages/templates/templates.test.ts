import { describe, expect, it } from 'vitest';
import type { CommandTemplate } from '../../api/types';
import { initialValues, keptValues, makesAnother, refusalOf, requestValues, templateGroups } from './form';
import { parameterOrder, previewOf, previewText, quoted } from './preview';

const parameter = (type: string, fields: object = {}) => ({
  type,
  required: false,
  description: type,
  ...fields,
});

const template: CommandTemplate = {
  id: 'release',
  name: 'Release',
  description: 'Publishes',
  category: 'release',
  command: 'sh',
  args_template: ['-c', 'echo {{$1}}', '--to={channel}', '{version}', '{dry_run}'],
  required_permissions: [],
  requires_confirmation: false,
  source: 'project',
  file: 'x.toml',
  parameters: {
    channel: parameter('choice', { default: 'beta', options: ['stable', 'beta'] }),
    dry_run: parameter('boolean', { default: true }),
    version: parameter('string', { required: true }),
  },
};

describe('the preview', () => {
  it('has each value as one argument, quoted where a shell would need it', () => {
    const values = { version: "1.0 'final' {channel}", channel: 'stable', dry_run: false };
    expect(previewText(previewOf(template, values))).toBe(
      `sh -c 'echo {$1}' --to=stable '1.0 '\\''final'\\'' {channel}' false`,
    );
  });

  it('names what is missing', () => {
    const parts = previewOf(template, initialValues(template));
    expect(parts[4]).toEqual([{ missing: 'version' }]);
    expect(previewText(parts)).toContain('--to=beta <version> true');
  });

  it('gives the order of the form', () => {
    expect(parameterOrder(template)).toEqual(['channel', 'version', 'dry_run']);
  });

  it('quotes the empty word', () => {
    expect(quoted('')).toBe("''");
    expect(quoted('a/b-c_1.0')).toBe('a/b-c_1.0');
  });
});

describe('the form', () => {
  it('begins with the defaults', () => {
    expect(initialValues(template)).toEqual({ channel: 'beta', dry_run: true, version: '' });
  });

  it('keeps what was entered when the template changes, as far as it has a place', () => {
    const { channel, ...others } = template.parameters;
    const changed = {
      ...template,
      parameters: {
        ...others,
        version: parameter('boolean'),
        target: parameter('string', { default: 'all' }),
      },
    };
    expect(channel).toBeDefined();
    expect(keptValues(changed, { channel: 'stable', dry_run: false, version: '1.0' })).toEqual({
      dry_run: false,
      version: false,
      target: 'all',
    });
  });

  it('tells whether another command is made', () => {
    expect(makesAnother(template, structuredClone(template))).toBe(false);
    expect(makesAnother(template, { ...template, name: 'Ship', estimated_duration: 5 })).toBe(false);
    expect(makesAnother(template, { ...template, command: 'bash' })).toBe(true);
    expect(makesAnother(template, { ...template, args_template: ['{version}'] })).toBe(true);
    const { version: _, ...fewer } = template.parameters;
    expect(makesAnother(template, { ...template, parameters: fewer })).toBe(true);
  });

  it('leaves to the daemon to name what is missing', () => {
    expect(requestValues(template, { channel: '', dry_run: false, version: '' })).toEqual({ dry_run: false });
  });

  it('shows what is wrong at each field, also with a text that looks like the next one', () => {
    const message =
      "template 'release': parameter 'bad' is unknown; allowed: version; parameter 'version' is missing; " +
      "parameter 'channel' is 'x; parameter y'; allowed: one of stable, beta";
    expect(refusalOf(message, template)).toEqual({
      fields: { version: 'is missing', channel: "is 'x; parameter y'; allowed: one of stable, beta" },
      rest: "parameter 'bad' is unknown; allowed: version",
    });
    expect(refusalOf('the disk is full', template).rest).toBe('the disk is full');
  });
});

it('templates are listed by category', () => {
  const other = { ...template, id: 'count', name: 'Count', category: 'analysis' };
  expect(templateGroups([template, other], '').map((group) => group.category)).toEqual([
    'analysis',
    'release',
  ]);
  expect(templateGroups([template, other], 'count ANALYSIS').flatMap((group) => group.templates)).toEqual([
    other,
  ]);
});
