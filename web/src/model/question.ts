/** Questions to a person: how they are answered, and how they ended; pure. */
import type { Interaction } from '../api/types';

/** The control that an answer is given with. */
export type AnswerControl = 'options' | 'text' | 'secret' | 'file';

export interface AnswerOption {
  value: string;
  /** What an approval permits or refuses has words of its own. */
  meaning: 'allow' | 'refuse' | null;
  isDefault: boolean;
}

/** How a question ended. */
export type QuestionEnd =
  | { kind: 'answered' | 'cancelled'; here: boolean; by: string | null; reason: string | null }
  | { kind: 'default_taken' | 'timed_out' };

export function answerControl(question: Interaction): AnswerControl {
  if (question.secret) return 'secret';
  if (question.options?.length || question.kind === 'confirmation') return 'options';
  return question.kind === 'file_selection' ? 'file' : 'text';
}

/** The answers that can be chosen; none where one is typed. */
export function answerOptions(question: Interaction): AnswerOption[] {
  if (answerControl(question) !== 'options') return [];
  const given = question.options?.length ? question.options : ['yes', 'no'];
  return given.map((value) => ({
    value,
    meaning: question.approval ? (value === 'yes' ? 'allow' : 'refuse') : null,
    isDefault: isDefault(value, question.default),
  }));
}

/** Whether an option is the default, which may be only its mark: `2` of `2) green`. */
function isDefault(option: string, given: string | undefined): boolean {
  if (given === undefined) return false;
  const mark = /^\s*[[(]?(\w{1,3})[)\].:]/.exec(option)?.[1];
  return option.toLowerCase() === given.toLowerCase() || mark === given;
}

/** The question itself: an approval has its command and rule apart. */
export function questionText(question: Interaction): string {
  return question.approval ? (question.message.split('\n')[0] ?? '') : question.message;
}

/** How it ended; `null` while it waits. `here`: this page ended it. */
export function questionEnd(question: Interaction, here: boolean): QuestionEnd | null {
  const { end, status } = question;
  if (!end) return null;
  if (end.took_default) return { kind: 'default_taken' };
  if (status === 'timed_out') return { kind: 'timed_out' };
  const kind = status === 'cancelled' ? 'cancelled' : 'answered';
  const reason = /^cancelled: (.+)$/s.exec(end.text)?.[1] ?? null;
  return { kind, here, by: end.by ?? null, reason };
}

/** The id of a question that has ended; `null` while it waits. It is what tells whether one ended newly. */
export function idOfEnded(question: Pick<Interaction, 'id' | 'end'> | undefined): string | null {
  return question?.end === undefined ? null : question.id;
}

/** Whether its answer permits what was asked about. */
export function isAllowed({ status, end }: Pick<Interaction, 'status' | 'end'>): boolean {
  return status === 'answered' && /^y(es)?$/i.test(end?.answer ?? '');
}

/** The shape of an end. */
export function endIcon(end: QuestionEnd): 'check' | 'close' | 'clock' {
  if (end.kind === 'answered') return 'check';
  return end.kind === 'cancelled' ? 'close' : 'clock';
}

/**
 * The question to show next, by its id: the one that is shown as long as it waits, so that no answer goes to
 * another one; then the one that ends first.
 */
export function shownNext(shown: string | null, pending: readonly Pick<Interaction, 'id'>[]): string | null {
  return pending.find(({ id }) => id === shown)?.id ?? pending[0]?.id ?? null;
}
