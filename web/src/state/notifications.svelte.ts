/** Notifications of the browser about questions, after the person asked for them. */

import type { Interaction } from '../api/types';
import { preferences } from '../app/preferences.svelte';
import { href, navigate } from '../app/router.svelte';
import { splitCommand } from '../format/command';
import { visibleLine, visibleText } from '../format/visible-text';
import { t } from '../i18n/index.svelte';
import { questionText } from '../model/question';
import { executions } from './executions.svelte';
import { interactions } from './interactions.svelte';

/** The time in which the command that asks becomes known, too, in milliseconds. */
const NAMED_MS = 500;

export type NotificationChoice = 'unsupported' | 'off' | 'blocked' | 'on';

let permission = $state<NotificationPermission | null>(
  'Notification' in window ? Notification.permission : null,
);

export const notifications = {
  get choice(): NotificationChoice {
    if (permission === null) return 'unsupported';
    if (permission === 'denied') return 'blocked';
    return permission === 'granted' && preferences.notifyQuestions ? 'on' : 'off';
  },
  /** Asks the browser, where that is needed. Called on a click. */
  async switchOn(): Promise<void> {
    if (permission === null) return;
    permission = await Notification.requestPermission();
    preferences.notifyQuestions = permission === 'granted';
  },
  switchOff(): void {
    preferences.notifyQuestions = false;
  },
};

/** What a notification says. It has no arguments of a command and no secret: others see the screen, too. */
export function notificationText(question: Interaction, command: string): { title: string; body: string } {
  const program = splitCommand(command).program.split('/').at(-1) ?? '';
  const title =
    program === '' ? t('inbox.notification') : t('inbox.notification_of', { program: visibleLine(program) });
  if (question.secret) return { title, body: t('inbox.asks_secret') };
  return { title, body: visibleText(question.approval ? question.approval.reason : questionText(question)) };
}

/** Tells of each new question while nobody looks at the page. Called within an effect; returns what ends it. */
export function notifyOfQuestions(): () => void {
  const shown = new Map<string, Notification>();
  let known: ReadonlySet<string> | null = null;
  const end = $effect.root(() => {
    $effect(() => {
      if (!interactions.loaded) return;
      const { pending } = interactions;
      const before = known;
      known = new Set(pending.map(({ id }) => id));
      closeOthers(shown, known);
      if (notifications.choice !== 'on' || document.hasFocus()) return;
      for (const question of pending) {
        if (!before?.has(question.id)) setTimeout(() => notify(question.id, shown), NAMED_MS);
      }
    });
  });
  return () => {
    end();
    closeOthers(shown, new Set());
  };
}

/** Takes back the notifications of questions that do not wait any more. */
function closeOthers(shown: Map<string, Notification>, waiting: ReadonlySet<string>): void {
  for (const [id, notification] of shown) {
    if (waiting.has(id)) continue;
    notification.close();
    shown.delete(id);
  }
}

function notify(id: string, shown: Map<string, Notification>): void {
  const question = interactions.pending.find((waiting) => waiting.id === id);
  if (!question) return;
  const command =
    question.approval?.command ??
    (question.execution ? executions.find(question.execution)?.command : undefined) ??
    '';
  const { title, body } = notificationText(question, command);
  try {
    const notification = new Notification(title, { body, tag: `ostler-${question.id}` });
    notification.onclick = () => {
      window.focus();
      navigate(href('inbox', question.id));
      notification.close();
    };
    shown.set(question.id, notification);
  } catch {
    // A browser that shows them from service workers only.
  }
}
