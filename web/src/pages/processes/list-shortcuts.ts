/** The keys of the list. */
import { href, navigate } from '../../app/router.svelte';
import type { Shortcut, ShortcutGroup } from '../../app/shortcuts.svelte';
import { connection } from '../../state/connection.svelte';
import type { ListActions } from './list-actions.svelte';
import { TABS } from './list-query';
import type { ProcessList } from './process-list.svelte';
import type { Row } from './rows';

interface Moves {
  moveBy: (delta: number) => void;
  search: () => void;
  clear: () => void;
}

export function listShortcuts(list: ProcessList, actions: ListActions, moves: Moves): ShortcutGroup {
  const current = (): Row | undefined => (list.cursor === null ? undefined : list.byId.get(list.cursor));
  /** The selected rows, else that of the cursor. */
  const chosen = (): Row[] => (list.selected.length > 0 ? list.selected : [current() ?? []].flat());
  /** An action that needs rows, and the daemon. */
  const act = (action: (rows: Row[]) => void) => () => {
    const rows = chosen();
    if (rows.length > 0 && connection.usable) action(rows);
  };
  const onCurrent = (action: (row: Row) => void) => () => {
    const row = current();
    if (row) action(row);
  };
  const tabs = TABS.map(
    (tab, index): Shortcut => ({
      keys: String(index + 1),
      label: `processes.key_tab_${tab}`,
      action: () => list.showTab(tab),
    }),
  );
  return {
    label: 'processes.keys_list',
    shortcuts: [
      { keys: 'j', label: 'processes.key_next', action: () => moves.moveBy(1) },
      { keys: 'k', label: 'processes.key_previous', action: () => moves.moveBy(-1) },
      {
        keys: 'o',
        label: 'processes.key_open_row',
        action: onCurrent((row) => navigate(href('p', row.execution.id))),
      },
      {
        keys: 'x',
        label: 'processes.key_select_row',
        action: onCurrent((row) => list.selection.toggle(row.uuid)),
      },
      {
        keys: 'Shift+x',
        label: 'processes.key_select_range',
        action: onCurrent((row) => list.selection.extendTo(row.uuid, list.ids)),
      },
      { keys: 's', label: 'processes.stop', action: act((rows) => actions.stop(rows, true)) },
      { keys: 'Shift+s', label: 'processes.force_stop', action: act((rows) => actions.forceStop(rows)) },
      { keys: 'c', label: 'common.clean', action: act((rows) => actions.clean(rows)) },
      {
        keys: 'r',
        label: 'processes.rerun',
        action: onCurrent((row) => {
          if (connection.usable) void actions.rerun(row);
        }),
      },
      { keys: 'y', label: 'processes.copy_id', action: act((rows) => void actions.copy(rows, 'id')) },
      {
        keys: 'Shift+y',
        label: 'processes.copy_command',
        action: act((rows) => void actions.copy(rows, 'command')),
      },
      { keys: '/', label: 'processes.key_search', action: moves.search },
      { keys: 'Escape', label: 'processes.key_clear', action: moves.clear },
      ...tabs,
    ],
  };
}
