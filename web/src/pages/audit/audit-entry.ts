/** What an entry of the audit log says: of whom, of what, and what the policy and the isolation were; pure. */
import type { AuditEntry, LedgerEvent } from '../../api/types';

export type AuditKind = 'requests' | 'refused' | 'all';

export const KINDS: readonly AuditKind[] = ['requests', 'refused', 'all'];

/** A request is what somebody asked for; the other entries tell what became of it. */
export function isOfKind(entry: AuditEntry, kind: AuditKind): boolean {
  if (kind === 'all') return true;
  if (entry.event === 'refused') return true;
  return kind === 'requests' && entry.event === 'created';
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}

/** What the log adds to an event. */
export function detailOf(entry: AuditEntry): Record<string, unknown> {
  return entry.detail ?? {};
}

/** The command line of the request; empty for an entry without one. */
export function commandOf(entry: AuditEntry): string {
  return text(detailOf(entry)['command']);
}

export function directoryOf(entry: AuditEntry): string {
  return text(detailOf(entry)['cwd']);
}

/** The interface that it came over. */
export function faceOf(entry: AuditEntry): string {
  return text(detailOf(entry)['face']);
}

/** The event, as the words of events expect it: with its own fields under their own names. */
export function eventOf(entry: AuditEntry): LedgerEvent {
  const { event_by: by, event_detail: detail } = entry as { event_by?: unknown; event_detail?: unknown };
  return { ...entry, by, detail, request: detailOf(entry) } as unknown as LedgerEvent;
}

export interface PolicyWords {
  decision: 'allow' | 'ask' | 'deny' | 'other';
  /** Empty where it is not told. */
  rule: string;
  reason: string;
}

/** What the command policy said; `null` where no rule matched. */
export function policyOf(entry: AuditEntry): PolicyWords | null {
  const detail = detailOf(entry);
  const said = text(detail['policy']) || refusalOf(entry);
  const rule = text(detail['rule']);
  if (said === '') return rule === '' ? null : { decision: 'ask', rule, reason: '' };
  const match = /^(allow|ask|deny) by rule '([^']*)': ?([\s\S]*)$/.exec(said);
  if (!match) return { decision: 'other', rule: '', reason: said };
  const [, decision, name = '', reason = ''] = match;
  return { decision: decision as PolicyWords['decision'], rule: name, reason };
}

/** A refusal by the policy says so itself. */
function refusalOf(entry: AuditEntry): string {
  if (entry.event !== 'refused') return '';
  return entry.message.startsWith('denied by rule ') ? entry.message.replace('denied', 'deny') : '';
}

export interface IsolationWords {
  /** The level that was asked for. */
  asked: string;
  /** Whether all that was asked for is in force; `null` for a request that was refused. */
  complete: boolean | null;
  /** What was asked for and is not in force. */
  missing: { ability: string; reason: string }[];
  /** What is in force. */
  inForce: string[];
}

/** The isolation of a request, or what was lost of it later; `null` for an entry that is not about it. */
export function isolationOf(entry: AuditEntry): IsolationWords | null {
  const detail = detailOf(entry);
  if (entry.event === 'degraded') {
    const reason = entry.event_detail;
    const ability = typeof entry.ability === 'string' ? entry.ability : entry.ability.enforcement;
    return { asked: '', complete: false, missing: [{ ability, reason }], inForce: [] };
  }
  const asked = text(detail['level']);
  if (asked === '') return null;
  const missing = entry.event === 'created' ? (entry.missing ?? []) : [];
  const complete = entry.event === 'created' ? missing.length === 0 : null;
  return { asked, complete, missing, inForce: texts(detail['in_force']) };
}

/** Whether each word stands somewhere in the entry: in who, what, the policy, an id or the hash. */
export function matchesWords(entry: AuditEntry, said: string, words: readonly string[]): boolean {
  const { seq, hash, execution, by, event } = entry;
  const detail = Object.values(detailOf(entry)).map((value) =>
    typeof value === 'string' ? value : JSON.stringify(value),
  );
  const all = [
    said,
    seq,
    hash,
    execution ?? '',
    by.principal,
    by.session ?? '',
    by.project ?? '',
    event,
    ...detail,
  ];
  const searched = all.join('\n').toLowerCase();
  return words.every((word) => searched.includes(word));
}
