/** Records of an environment that need a person, counted and summed by one statement. */
import type { Scope } from '../../core/foundation/scope.ts';
import { formatMs } from '../../core/foundation/time/instant.ts';
import type { Database } from '../foundation/stores.ts';
import { UNPAID_INVOICE } from '../models/invoicing/unpaid.ts';

type RecordCondition = {
  readonly table: string;
  /** SQL of the columns of a record: its id, and since when it needs attention. */
  readonly id: string;
  readonly at: string;
  /** SQL of currency and amount, for records with money. */
  readonly money?: readonly [currency: string, amount: string];
  readonly condition: string;
};

const INVOICE = { table: 'invoices', id: 'id' } as const;

/** `:since` is the start of the recent past; a failure from before it needs no attention any more. */
const CONDITIONS = {
  payment_failed: {
    ...INVOICE,
    at: 'coalesce(finalized_at, created_at)',
    money: ['currency', 'amount_remaining'],
    condition: `${UNPAID_INVOICE} and payment_status = 'FAILED'`,
  },
  invoice_overdue: {
    ...INVOICE,
    at: 'due_date',
    money: ['currency', 'amount_remaining'],
    condition: `${UNPAID_INVOICE} and due_date < :now`,
  },
  invoice_draft_waiting: {
    ...INVOICE,
    at: 'created_at',
    money: ['currency', 'amount_due'],
    condition: `invoice_status = 'DRAFT' and status = 'published' and (period_end is null or period_end <= :now)`,
  },
  alert_in_alarm: {
    table: 'alert_states',
    id: 'entity_id',
    at: 'updated_at',
    condition: `alert_status <> 'ok'`,
  },
  task_failed: {
    table: 'tasks',
    id: 'id',
    at: 'failed_at',
    condition: `task_status = 'FAILED' and status = 'published' and failed_at >= :since`,
  },
  webhook_failing: {
    table: 'webhook_endpoints',
    id: 'id',
    at: 'failing_since',
    condition: `status = 'published' and failing_since is not null`,
  },
} as const satisfies Record<string, RecordCondition>;

export type RecordAttentionKind = keyof typeof CONDITIONS;

export type Attention<Kind extends string> = {
  readonly kind: Kind;
  readonly count: number;
  readonly amounts: readonly { readonly currency: string; readonly amount: string }[];
  readonly oldest_at: string;
  readonly sample_ids: readonly string[];
};

/** Lists the kinds with at least one record. The samples are its oldest records. */
export async function listRecordAttention(
  scope: Scope,
  { kinds, now, since, samples }: { kinds: readonly RecordAttentionKind[]; now: Date; since: number; samples: number },
  database: Database,
): Promise<Attention<RecordAttentionKind>[]> {
  if (kinds.length === 0) return [];
  const { rows } = await database.raw(
    `with open as materialized (${kinds.map(buildSelect).join(' union all ')}),
     sums as (
       select kind, currency, count(*) as count, sum(amount) as amount, min(at) as oldest_at
         from open group by kind, currency
     ), samples as (
       select kind, (array_agg(id order by at, id))[1:${samples}] as sample_ids from open group by kind
     )
     select sums.kind, sum(sums.count)::int as count, min(sums.oldest_at) as oldest_at, samples.sample_ids,
            coalesce(json_agg(json_build_object('currency', sums.currency, 'amount', trim_scale(sums.amount)::text)
                              order by sums.currency) filter (where sums.currency is not null), '[]')::text as amounts
       from sums join samples on samples.kind = sums.kind
      group by sums.kind, samples.sample_ids`,
    { ...scope, now: now.toISOString(), since: formatMs(since) },
  );
  return rows.map((row: Attention<RecordAttentionKind> & { amounts: string }) => ({
    ...row,
    amounts: JSON.parse(row.amounts),
  }));
}

function buildSelect(kind: RecordAttentionKind): string {
  const { table, id, at, condition, ...rest }: RecordCondition = CONDITIONS[kind];
  const [currency, amount] = rest.money ?? ['null::text', 'null::numeric'];
  return `select '${kind}' as kind, ${id} as id, ${at} as at, ${currency} as currency, ${amount} as amount
            from ${table}
           where tenant_id = :tenant_id and environment_id = :environment_id and ${condition}`;
}
