/**
 * Audit of the ledger and of the log: the ranges of offsets are contiguous up to the progress of the stores, and every accepted event has
 * an outcome or waits. Each check is one Postgres statement, so it reads one snapshot even if data arrive meanwhile.
 */
import { findLedgerFaults, type LedgerFault, type LedgerSums, loadLedgerSums } from '../../../storage/audit/ledger.ts';
import {
  countUnaccountedEvents,
  findFirstMissingRecord,
  type LogAccount,
  logAccounts,
} from '../../../storage/audit/log-accounts.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { nextOffsets } from '../../../storage/progress/partition-progress.ts';
import { readProgress } from '../../../storage/progress/slices.ts';
import type { Finding, OnFinding } from './findings.ts';

const FAULTS_MAX = 1_000;

export async function auditLedger({ postgres }: Pick<Stores, 'postgres'>, found: OnFinding): Promise<LedgerSums> {
  for (const fault of await findLedgerFaults(postgres, FAULTS_MAX)) found(toLedgerFinding(fault));
  return loadLedgerSums(postgres);
}

function toLedgerFinding({ kind, partition, from, to }: LedgerFault): Finding {
  const what = {
    ledger_gap: `the ledger ends at offset ${from} and goes on at ${to}`,
    ledger_overlap: `the ledger counts offsets ${from} to ${to} twice`,
    ledger_end: `the ledger ends at offset ${from}, and the stores are said to hold everything before ${to}`,
  };
  const ends = { partition, from_offset: String(from), to_offset: String(to) };
  return { kind, count: Number(to - from), ...ends, what: what[kind] };
}

/** Begin and end offsets of a partition of the log. */
export type LogBounds = { readonly partition: number; readonly low: bigint; readonly end: bigint };

/** The log in Postgres. */
export async function auditEmbeddedLog(
  { postgres }: Pick<Stores, 'postgres'>,
  found: OnFinding,
): Promise<{ partitions: number; waiting: number }> {
  const accounts = await logAccounts(postgres);
  for (const account of accounts) {
    for (const finding of listLogFindings(account)) found(finding);
    const missing = Number(account.log_end - account.next_offset) - account.waiting_records;
    if (missing > 0) found(await findMissingRecords(postgres, account, missing));
  }
  return { partitions: accounts.length, waiting: accounts.reduce((sum, { waiting }) => sum + waiting, 0) };
}

function listLogFindings(account: LogAccount): Finding[] {
  const { partition, accepted, settled, waiting, next_offset, log_end } = account;
  const findings: Finding[] = [];
  const unaccounted = countUnaccountedEvents(account);
  if (unaccounted !== 0) {
    const what = `${accepted} events were accepted, ${settled} are settled and ${waiting} wait`;
    findings.push({ kind: 'events_unaccounted', count: unaccounted, partition, what });
  }
  if (next_offset > log_end) findings.push(buildLogBehindFinding({ partition, next_offset, log_end }));
  return findings;
}

async function findMissingRecords(postgres: Stores['postgres'], account: LogAccount, count: number): Promise<Finding> {
  const { partition, next_offset, log_end } = account;
  const first = await findFirstMissingRecord(postgres, account);
  const where = first === undefined ? '' : `, the first at offset ${first}`;
  const ends = { from_offset: String(next_offset), to_offset: String(log_end) };
  const what = `records that are not in the stores are not in the log either${where}`;
  return { kind: 'log_records_missing', count, partition, ...ends, what };
}

function buildLogBehindFinding({
  partition,
  next_offset,
  log_end,
}: Pick<LogAccount, 'partition' | 'next_offset' | 'log_end'>): Finding {
  const ends = { from_offset: String(log_end), to_offset: String(next_offset) };
  const what = `the log ends at offset ${log_end}, and the stores hold everything before ${next_offset}`;
  return { kind: 'log_behind_the_stores', count: Number(next_offset - log_end), partition, ...ends, what };
}

/** Audits a log that only reports its bounds. The progress of the stores is read first, because the log's end never moves back. */
export async function auditLogBounds(
  { postgres }: Pick<Stores, 'postgres'>,
  bounds: () => Promise<readonly LogBounds[]>,
  found: OnFinding,
): Promise<{ partitions: number }> {
  const before = nextOffsets(await readProgress(postgres));
  const ends = await bounds();
  for (const { partition, low, end } of ends) {
    const next_offset = before.get(partition);
    if (next_offset === undefined) continue;
    if (end < next_offset) found(buildLogBehindFinding({ partition, next_offset, log_end: end }));
    // The log may already have deleted records that were stored since the progress was read, so the progress is read again before a
    // finding.
    if (low > next_offset) await reportMissingRecords(postgres, { partition, low }, found);
  }
  return { partitions: ends.length };
}

async function reportMissingRecords(
  postgres: Stores['postgres'],
  { partition, low }: Pick<LogBounds, 'partition' | 'low'>,
  found: OnFinding,
): Promise<void> {
  const state = (await readProgress(postgres)).find((each) => each.partition === partition);
  if (state === undefined || low <= state.next_offset) return;
  const ends = { from_offset: String(state.next_offset), to_offset: String(low) };
  const what = `the stores are at offset ${state.next_offset}, and the log begins at ${low}`;
  found({ kind: 'log_records_missing', count: Number(low - state.next_offset), partition, ...ends, what });
}
