/** The actions on a row. */
import { href, navigate } from '../../app/router.svelte';
import { t } from '../../i18n/index.svelte';
import { isActive } from '../../model/display-state';
import { connection } from '../../state/connection.svelte';
import type { MenuItem } from '../../ui/Menu.svelte';
import type { ListActions } from './list-actions.svelte';
import type { ProcessList } from './process-list.svelte';
import type { Row } from './rows';

export function rowMenu(row: Row, list: ProcessList, actions: ListActions): MenuItem[] {
  const { execution } = row;
  const active = isActive(execution);
  const disabled = !connection.usable;
  const selected = list.selection.has(row.uuid);
  const items: (MenuItem | false)[] = [
    { label: t('common.open'), icon: 'chevronRight', action: () => navigate(href('p', execution.id)) },
    {
      label: t(selected ? 'processes.deselect' : 'processes.select_row'),
      icon: 'check',
      action: () => list.selection.toggle(row.uuid),
    },
    active && {
      label: t(execution.paused ? 'processes.resume' : 'processes.pause'),
      icon: execution.paused ? 'play' : 'pause',
      disabled,
      action: () => void actions.pause(row),
    },
    {
      label: t('processes.rerun'),
      icon: 'rerun',
      disabled,
      action: () => void actions.rerun(row),
    },
    { label: t('processes.copy_id'), icon: 'copy', action: () => void actions.copy([row], 'id') },
    { label: t('processes.copy_command'), icon: 'copy', action: () => void actions.copy([row], 'command') },
    active && { label: t('processes.stop'), icon: 'stop', disabled, action: () => actions.stop([row]) },
    active && {
      label: t('processes.force_stop_one'),
      icon: 'stop',
      danger: true,
      disabled,
      action: () => actions.forceStop([row]),
    },
    !active && { label: t('common.clean'), icon: 'trash', disabled, action: () => actions.clean([row]) },
  ];
  return items.filter((item) => item !== false);
}
