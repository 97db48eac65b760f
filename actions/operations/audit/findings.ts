/**
 * Kinds of findings of the record audits, one line each. docs/operations.md has a section for each, under its name: its meaning,
 * its causes, and its repair.
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { NamedPosition } from '../../../storage/audit/positions.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';

export type AuditStores = Pick<Stores, 'postgres' | 'clickhouse'>;

export const CHECKS = [
  'ledger',
  'log',
  'raw_rows',
  'outcomes',
  'identities',
  'corrections',
  'second_count',
  'identity_files',
  'credits',
  'invoices',
  'uninvoiced',
  'integrations',
  'running',
  'revenue',
  'reservations',
  'tasks',
  'usage',
] as const;
export type CheckName = (typeof CHECKS)[number];

/**
 * Kinds of findings. `spoils_recount` is true if a recount from the raw rows is not reliable, so that bucket rows must
 * not be rewritten.
 */
export const KINDS = {
  ledger_gap: { check: 'ledger', spoils_recount: true },
  ledger_overlap: { check: 'ledger', spoils_recount: true },
  ledger_end: { check: 'ledger', spoils_recount: true },
  events_unaccounted: { check: 'log', spoils_recount: true },
  log_records_missing: { check: 'log', spoils_recount: true },
  log_behind_the_stores: { check: 'log', spoils_recount: true },
  raw_rows_missing: { check: 'raw_rows', spoils_recount: true },
  raw_rows_extra: { check: 'raw_rows', spoils_recount: true },
  raw_rows_doubled: { check: 'raw_rows', spoils_recount: true },
  rows_ahead: { check: 'raw_rows', spoils_recount: true },
  outcomes_missing: { check: 'outcomes', spoils_recount: false },
  outcomes_extra: { check: 'outcomes', spoils_recount: false },
  outcomes_doubled: { check: 'outcomes', spoils_recount: false },
  raw_rows_without_identity: { check: 'identities', spoils_recount: true },
  identities_without_raw_row: { check: 'identities', spoils_recount: true },
  ids_doubled: { check: 'identities', spoils_recount: true },
  id_hash_wrong: { check: 'identities', spoils_recount: true },
  correction_missing: { check: 'corrections', spoils_recount: true },
  correction_extra: { check: 'corrections', spoils_recount: true },
  correction_differs: { check: 'corrections', spoils_recount: true },
  counts_disagree: { check: 'second_count', spoils_recount: true },
  identity_file_damaged: { check: 'identity_files', spoils_recount: false },
  identity_file_differs: { check: 'identity_files', spoils_recount: false },
  credits_unbalanced: { check: 'credits', spoils_recount: false },
  lot_differs: { check: 'credits', spoils_recount: false },
  wallet_differs: { check: 'credits', spoils_recount: false },
  movement_differs: { check: 'credits', spoils_recount: false },
  invoice_lines_differ: { check: 'invoices', spoils_recount: false },
  invoice_total_differs: { check: 'invoices', spoils_recount: false },
  invoice_paid_differs: { check: 'invoices', spoils_recount: false },
  invoice_refunded_differs: { check: 'invoices', spoils_recount: false },
  invoice_adjusted_differs: { check: 'invoices', spoils_recount: false },
  payment_refunded_differs: { check: 'invoices', spoils_recount: false },
  line_credited_too_much: { check: 'invoices', spoils_recount: false },
  invoice_usage_differs: { check: 'invoices', spoils_recount: false },
  invoice_number_gap: { check: 'invoices', spoils_recount: false },
  credit_note_number_gap: { check: 'invoices', spoils_recount: false },
  usage_uninvoiced: { check: 'uninvoiced', spoils_recount: false },
  invoice_not_sent: { check: 'integrations', spoils_recount: false },
  payment_not_sent: { check: 'integrations', spoils_recount: false },
  push_unresolved: { check: 'integrations', spoils_recount: false },
  running_differs: { check: 'running', spoils_recount: false },
  revenue_differs: { check: 'revenue', spoils_recount: false },
  recurring_revenue_differs: { check: 'revenue', spoils_recount: false },
  pool_differs: { check: 'reservations', spoils_recount: false },
  reservation_differs: { check: 'reservations', spoils_recount: false },
  reservation_id_taken: { check: 'reservations', spoils_recount: false },
  export_ranges_differ: { check: 'tasks', spoils_recount: false },
  export_counts_differ: { check: 'tasks', spoils_recount: false },
  export_file_differs: { check: 'tasks', spoils_recount: false },
  import_report_differs: { check: 'tasks', spoils_recount: false },
} as const satisfies Record<string, { check: CheckName; spoils_recount: boolean }>;
export type FindingKind = keyof typeof KINDS;

export type Finding = {
  readonly kind: FindingKind;
  /** Number of affected rows, records or events; negative if there are too many. */
  readonly count: number;
  /** Description of the finding in one sentence. */
  readonly what: string;
  readonly partition?: number;
  /** Half-open range of offsets, as text. */
  readonly from_offset?: string;
  readonly to_offset?: string;
  /** The correction that must be applied again to repair the difference. */
  readonly correction_id?: string;
  /** The first affected events. */
  readonly first?: readonly NamedPosition[];
};

export type OnFinding = (finding: Finding) => void;

/** Numbers of checked records, and of findings. */
export type CheckReport = {
  readonly check: CheckName;
  readonly counts: Readonly<Record<string, number>>;
  readonly differences: number;
  /** Reason why the check was not made; absent if it was made. */
  readonly skipped?: string;
};

/** Formats the event's id with its scope. */
export function formatEventId({ tenant_id, environment_id, event_id }: Scope & { readonly event_id: string }): string {
  return `${tenant_id} ${environment_id} ${JSON.stringify(event_id)}`;
}

export function toCheckName(kind: FindingKind): CheckName {
  return KINDS[kind].check;
}

export function spoilsRecount({ kind }: Finding): boolean {
  return KINDS[kind].spoils_recount;
}
