/** The bodies of REST, by the names that the pages use. */
import type { components } from './schema';

type Schemas = components['schemas'];

export type Execution = Schemas['ExecutionBody'];
export type StartRequest = Schemas['StartBody'];
export type CleanOutcome = Schemas['CleanSelectedResponse'];
export type Service = Schemas['ServiceBody'];
export type ServiceStart = Schemas['ServiceStartBody'];
export type DetectedService = Schemas['DetectedServiceBody'];
export type ServiceStop = Schemas['ServiceStopResponse'];
export type PortHolder = Schemas['PortHolder'];
export type ServiceDiagnosis = Schemas['ServiceDiagnosisBody'];
export type Interaction = Schemas['InteractionBody'];
export type HistoryEntry = Schemas['HistoryEntryBody'];
export type HistoryDetail = Schemas['HistoryDetailBody'];
export type AuditEntry = Schemas['AuditEntryBody'];
export type AuditReport = Schemas['AuditReport'];
export type DamagedEntries = Schemas['DamagedEntriesBody'];
export type LedgerEvent = Schemas['EventBody'];
export type EventsPage = Schemas['EventsBody'];
export type NumberedPage = Schemas['NumberedPageBody'];
export type NumberedLine = Schemas['NumberedLineBody'];
export type LineSearch = Schemas['LineSearchBody'];
export type FailureLines = Schemas['FailureLinesBody'];
export type OutputShape = Schemas['OutputShapeBody'];
export type UsagePoint = Schemas['UsagePointBody'];
export type ExecutionUsage = Schemas['ExecutionUsageBody'];
export type CommandTemplate = Schemas['CommandTemplateBody'];
export type CommandTemplates = Schemas['CommandTemplatesBody'];
export type TemplateParameter = Schemas['CommandTemplateParameterBody'];
export type TerminalServerMessage = Schemas['TerminalServerMessage'];
export type TerminalClientMessage = Schemas['TerminalClientMessage'];
export type TermSize = Schemas['TermSize'];
export type Screen = Schemas['ScreenBody'];
export type Problem = Schemas['Problem'];
export type ByteString = Schemas['ByteString'];
export type Token = Schemas['TokenBody'];
export type NewToken = Schemas['NewTokenBody'];
export type CreatedToken = Schemas['TokenCreatedBody'];
export type Health = Schemas['HealthBody'];
export type Policy = Schemas['PolicyBody'];
export type PolicyRule = Schemas['PolicyRuleBody'];
export type PolicyVerdict = Schemas['PolicyVerdictBody'];
export type Workspace = Schemas['WorkspaceBody'];

/** The text of a byte string; bytes that are no UTF-8 become U+FFFD. */
export function byteText(bytes: ByteString | null | undefined): string {
  if (bytes === null || bytes === undefined) return '';
  if (typeof bytes === 'string') return bytes;
  const raw = Uint8Array.from(atob(bytes.base64), (character) => character.charCodeAt(0));
  return new TextDecoder().decode(raw);
}
