/** The pages in the rail, their keys and icons. */
import type { RouteName } from '../app/routes';
import type { MessageKey } from '../i18n/index.svelte';
import type { IconName } from '../ui/icons';

export interface NavigationEntry {
  path: string;
  label: MessageKey;
  icon: IconName;
  /** The second key after `g`. */
  key: string;
  /** The pages that belong to it. */
  routes: RouteName[];
  count?: 'active' | 'terminals' | 'services' | 'questions';
}

export const WORK: readonly NavigationEntry[] = [
  {
    path: 'processes',
    label: 'common.processes',
    icon: 'list',
    key: 'p',
    routes: ['processes', 'process'],
    count: 'active',
  },
  {
    path: 'terminals',
    label: 'common.terminals',
    icon: 'terminal',
    key: 't',
    routes: ['terminals', 'terminal'],
    count: 'terminals',
  },
  {
    path: 'services',
    label: 'common.services',
    icon: 'server',
    key: 's',
    routes: ['services', 'service'],
    count: 'services',
  },
  {
    path: 'inbox',
    label: 'common.interactions',
    icon: 'question',
    key: 'i',
    routes: ['inbox'],
    count: 'questions',
  },
  {
    path: 'templates',
    label: 'common.templates',
    icon: 'template',
    key: 'e',
    routes: ['templates', 'template'],
  },
];

export const RECORDS: readonly NavigationEntry[] = [
  { path: 'history', label: 'common.history', icon: 'history', key: 'h', routes: ['history'] },
  { path: 'audit', label: 'common.audit', icon: 'audit', key: 'a', routes: ['audit'] },
  { path: 'resources', label: 'common.resources', icon: 'activity', key: 'r', routes: ['resources'] },
];

export const SETTINGS: NavigationEntry = {
  path: 'settings',
  label: 'common.settings',
  icon: 'settings',
  key: 'c',
  routes: ['settings'],
};
