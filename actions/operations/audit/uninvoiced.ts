/**
 * Audit of usage that is on no invoice: every interval of a usage line that should be invoiced by now is invoiced, or has no usage
 * (core/invoicing/invoice/uninvoiced.ts). Usually all are invoiced, and then no usage is read.
 */

import { groupBy } from '../../../core/foundation/group-by.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { formatMs } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import { canBeUnpaid, deriveInvoicedReach, uninvoicedTimes } from '../../../core/invoicing/invoice/uninvoiced.ts';
import { deriveEndInstant } from '../../../core/subscriptions/propagation.ts';
import {
  listLastMovedSubscriptions,
  loadCancellationInvoiceEnds,
  loadInvoicedPeriods,
  type NamedSubscription,
  sampleMovedSubscriptions,
} from '../../../storage/audit/uninvoiced.ts';
import { mapConcurrently } from '../../../storage/concurrency/batch-loader.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import type { EventLog } from '../../../storage/log/log.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import {
  CHARGES_AT_ONCE,
  gatherItems,
  toBilledLineItem,
  toBilledSubscription,
  toScope,
} from '../../rating/billable-items.ts';
import { createUsageReader } from '../../rating/measure-usage.ts';
import { loadOwnMembers } from '../../rating/members.ts';
import type { AuditStores, OnFinding } from './findings.ts';

type UninvoicedAuditCounts = { readonly subscriptions: number; readonly lines: number };

const NEWEST = 5_000;
const SAMPLE = 100;
/** Subscriptions of one environment per transaction. */
const AT_ONCE = 200;

export async function auditUninvoiced(stores: AuditStores, found: OnFinding): Promise<UninvoicedAuditCounts> {
  return auditSubscriptions(stores, await listLastMovedSubscriptions(stores.postgres, NEWEST), found);
}

/** Continuous audit of some subscriptions. */
export async function sampleUninvoiced(stores: AuditStores, found: OnFinding): Promise<void> {
  await auditSubscriptions(stores, await sampleMovedSubscriptions(stores.postgres, SAMPLE), found);
}

async function auditSubscriptions(
  stores: AuditStores,
  named: readonly NamedSubscription[],
  found: OnFinding,
): Promise<UninvoicedAuditCounts> {
  const counts = { subscriptions: named.length, lines: 0 };
  const byScope = groupBy(named, ({ tenant_id, environment_id }) => `${tenant_id} ${environment_id}`);
  for (const those of byScope.values())
    for (let from = 0; from < those.length; from += AT_ONCE) {
      const scope = toScope(those[0]);
      const ids = those.slice(from, from + AT_ONCE).map(({ id }) => id);
      // Both reads use one snapshot, because periods advance and drafts are recomputed meanwhile.
      const { lines, open } = await stores.postgres.transaction(
        (transaction) => listUninvoicedTimes(transaction, scope, ids),
        {
          isolationLevel: 'repeatable read',
          readOnly: true,
        },
      );
      counts.lines += lines;
      for (const one of open) await reportUninvoicedUsage(stores, one, found);
    }
  return counts;
}

type UninvoicedSubscription = {
  readonly subscription: SubscriptionModel;
  /** Intervals to check, each of one line item. */
  readonly times: readonly { readonly line_item_id: string; readonly time: Period }[];
};

async function listUninvoicedTimes(database: Database, scope: Scope, ids: readonly string[]) {
  const subscriptions = await SubscriptionModel.byId(scope, ids, database);
  const all = [...subscriptions.values()];
  const parents = await SubscriptionModel.byId(
    scope,
    all.flatMap(({ parent_subscription_id }) => parent_subscription_id ?? []),
    database,
  );
  const records = await SubscriptionLineItemModel.in(scope, database)
    .whereIn('subscription_id', [...ids])
    // A removed line charges nothing, and usage is charged in arrears.
    .where({ status: 'published', price_type: 'USAGE', invoice_cadence: 'ARREAR' });
  const invoiced = await loadInvoicedPeriods(
    database,
    scope,
    records.map(({ id }) => id),
  );
  const lasts = await loadCancellationInvoiceEnds(database, scope, ids);
  const open: UninvoicedSubscription[] = [];
  for (const [id, lines] of groupBy(records, ({ subscription_id }) => subscription_id)) {
    const subscription = subscriptions.get(id)!;
    const parent = parents.get(subscription.parent_subscription_id ?? '');
    const has_last = lasts.get(id)?.has(deriveEndInstant(subscription)) ?? false;
    const reach = deriveInvoicedReach(subscription, { parent, has_last });
    if (reach === null) continue;
    // A subscription that may have ended without being paid is skipped, unless an invoiced line shows that it was paid for.
    if (canBeUnpaid(subscription, parent) && !lines.some((line) => invoiced.has(line.id))) continue;
    const billed = toBilledSubscription(subscription);
    const times = lines.flatMap((line) => {
      const item = { ...toBilledLineItem(line, subscription), reset_usage: null };
      const lineTimes = { item, subscription: billed, reach, invoiced: invoiced.get(line.id) ?? [] };
      return uninvoicedTimes(lineTimes).map((time) => ({ line_item_id: line.id, time }));
    });
    if (times.length > 0) open.push({ subscription, times });
  }
  return { lines: records.length, open };
}

/**
 * A log without lag, because this audit ignores the lag of the log; the next audit reports events that were not counted
 * yet.
 */
const NO_LOG = { lag: async () => [] } satisfies Pick<EventLog, 'lag'> as unknown as EventLog;

async function reportUninvoicedUsage(
  stores: AuditStores,
  { subscription, times }: UninvoicedSubscription,
  found: OnFinding,
): Promise<void> {
  const { postgres, clickhouse } = stores;
  const items = new Map((await gatherItems(postgres, subscription)).map((item) => [item.id, item]));
  const members = await loadOwnMembers(postgres, subscription);
  const measure = createUsageReader({ postgres, clickhouse, log: NO_LOG }, postgres, { subscription, members });
  await mapConcurrently(CHARGES_AT_ONCE, times, async ({ line_item_id, time }) => {
    const item = items.get(line_item_id);
    if (item === undefined) return;
    // The usage is measured without entitlements, because an invoice has a line even if all of its usage is free.
    const { quantity, event_count } = await measure(item, time, { limited: [] });
    if (event_count === 0 || quantity.isZero()) return;
    const used = `${event_count} events that come to ${quantity.toFixed()} from ${formatMs(time.start)} to ${formatMs(time.end)}`;
    const what = `${subscription.id}, line ${line_item_id}: ${used} are on no invoice`;
    found({ kind: 'usage_uninvoiced', count: event_count, what });
  });
}
