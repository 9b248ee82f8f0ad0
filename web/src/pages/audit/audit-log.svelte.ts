/** The entries of the audit log that were read, newest first. */
import { api, body } from '../../api/client';
import type { AuditEntry, AuditReport, DamagedEntries } from '../../api/types';
import { onEvent } from '../../state/connection.svelte';
import { type AuditPage, auditEnd, joinDamaged, type ReadPage, readOlder, readWindow } from './audit-reader';

/** Entries that one press brings, at least. */
const WANTED = 100;

/** The types of what an entry may be are too many for the compiler to compare. */
const readPage: ReadPage = async (from, limit) =>
  (await body(api.GET('/api/v1/audit', { params: { query: { from, limit } } }))) as AuditPage;

export class AuditLog {
  entries = $state.raw<AuditEntry[]>([]);
  /** Those in between that cannot be read. */
  damaged = $state.raw<DamagedEntries[]>([]);
  loaded = $state(false);
  isReading = $state(false);
  error = $state.raw<unknown>(null);
  /** Events since the newest entry that was read. */
  news = $state(0);
  /** The number that all entries are at or after. */
  #start = $state(0);
  #end = 0;

  report = $state.raw<AuditReport | null>(null);
  isVerifying = $state(false);
  verifyError = $state.raw<unknown>(null);

  get hasOlder(): boolean {
    return this.loaded && this.#start > 0;
  }

  /** Counts what is new until the returned function is called. */
  follow(): () => void {
    return onEvent(() => {
      this.news += 1;
    });
  }

  /** Reads the newest entries. */
  async readNewest(): Promise<void> {
    await this.#read(async () => {
      this.news = 0;
      const end = await auditEnd(readPage);
      if (this.loaded) {
        const newer = await readWindow(readPage, this.#end, end);
        this.entries = [...newer.entries.reverse(), ...this.entries];
        this.damaged = joinDamaged(this.damaged, newer.damaged);
      } else {
        const { entries, damaged, start } = await readOlder(readPage, end, WANTED);
        this.entries = entries;
        this.damaged = damaged;
        this.#start = start;
      }
      this.#end = end;
      this.loaded = true;
    });
  }

  async readOlder(): Promise<void> {
    await this.#read(async () => {
      const { entries, damaged, start } = await readOlder(readPage, this.#start, WANTED);
      this.entries = [...this.entries, ...entries];
      this.damaged = joinDamaged(damaged, this.damaged);
      this.#start = start;
    });
  }

  async verify(): Promise<void> {
    this.isVerifying = true;
    this.verifyError = null;
    try {
      this.report = await body(api.GET('/api/v1/audit/verify', { params: {} }));
    } catch (error) {
      this.report = null;
      this.verifyError = error;
    } finally {
      this.isVerifying = false;
    }
  }

  async #read(action: () => Promise<void>): Promise<void> {
    if (this.isReading) return;
    this.isReading = true;
    try {
      await action();
      this.error = null;
    } catch (error) {
      this.error = error;
    } finally {
      this.isReading = false;
    }
  }
}
