/**
 * Applies added and ended prices of a plan to its subscriptions (docs/rules/subscriptions.md, "Prices that
 * the plan gets later"), as a workflow. Each subscription is brought to the plan's last price in its own transaction, under its row lock;
 * a subscription that is up to date is skipped. So an aborted run, or two concurrent ones, take effect once.
 */

import type { Price } from '../../../core/catalog/price/record.ts';
import { FarthingError } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import { priceReset } from '../../../core/metering/price-reset.ts';
import { buildLineItem } from '../../../core/subscriptions/lines.ts';
import {
  computePlanSync,
  inheritCommitment,
  type PlanSync,
  type SyncedLine,
  toRootId,
} from '../../../core/subscriptions/plan-sync.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Database, Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { PlanModel } from '../../../storage/models/catalog/plan.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';
import type { WorkflowRunModel } from '../../../storage/models/foundation/workflow-run.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { narrowToUnsyncedAfter, SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import { emit } from '../../foundation/emit.ts';
import {
  addRun,
  completeRun,
  lockRun,
  type RunAttempt,
  type RunReference,
  requeueRun,
  storeResult,
  tryRun,
} from '../../foundation/workflows/run.ts';
import { currentPeriod, toBilledSubscription } from '../../rating/billable-items.ts';
import { checkSharedMeters } from '../../subscriptions/shared-meters.ts';

export const SYNC_JOB = { task: 'sync-plan-prices', time_sliced: true } as const;
const SUBSCRIPTIONS_AT_ONCE = 500;

export async function enqueuePlanSync(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { plan_id, author }: { plan_id: string; author: Author },
): Promise<WorkflowRunModel> {
  return postgres.transaction(async (transaction) => {
    await PlanModel.fetchPublished(scope, plan_id, { database: transaction });
    return addRun(transaction, scope, {
      job: SYNC_JOB,
      workflow_type: 'PriceSyncWorkflow',
      task_queue: 'price',
      entity: 'plan',
      entity_id: plan_id,
      author,
      conflict: `the prices of plan ${plan_id} are being taken over to its subscriptions already`,
    });
  });
}

type PlanSyncOutcome = 'completed' | 'failed' | 'overtaken';

/** Runs the sync of a plan. `overtaken` means that other jobs waited for the slot, and another job continues the run. */
export function trySync(stores: Stores, place: RunReference, attempt: RunAttempt): Promise<PlanSyncOutcome> {
  return tryRun(stores, place, attempt, () => syncAll(stores, place, attempt));
}

type PlanSyncCounts = { subscriptions_synced: number; line_items_added: number; line_items_ended: number };
const NONE: PlanSyncCounts = { subscriptions_synced: 0, line_items_added: 0, line_items_ended: 0 };

/** Synchronizes all subscriptions. One that fails does not stop the others; the run is retried for it. */
async function syncAll(
  stores: Stores,
  place: RunReference,
  { clock, signal, mayGoOn }: RunAttempt,
): Promise<PlanSyncOutcome> {
  const { postgres } = stores;
  const { run, ended } = await lockRun(postgres, place);
  if (ended) return ended;
  let failure: unknown;
  for await (const { id } of listUnsyncedSubscriptions(postgres, place, run.entity_id)) {
    signal.throwIfAborted();
    // After a failure the run does not yield: its continuation would begin with the failing subscription.
    if (failure === undefined && (await mayGoOn?.()) === false) {
      await postgres.transaction((transaction) => requeueRun(transaction, place, SYNC_JOB));
      return 'overtaken';
    }
    try {
      await syncWithin(stores, place, { id, author: { user_id: run.created_by, now: clock() } });
    } catch (error) {
      failure ??= error;
    }
  }
  if (failure !== undefined) throw failure;
  return postgres.transaction(async (transaction) => {
    const { run: lockedRun, ended: otherwise } = await lockRun(transaction, place);
    return otherwise ?? completeRun(transaction, place, { result: toCounts(lockedRun), now: clock() });
  });
}

async function* listUnsyncedSubscriptions(database: Database, scope: Scope, plan_id: string) {
  const last = await findLastSequence(scope, plan_id, database);
  for (let after = ''; ; ) {
    const page = await narrowToUnsyncedAfter(SubscriptionModel.in(scope, database), { plan_id, sequence: last, after })
      .select('id')
      .limit(SUBSCRIPTIONS_AT_ONCE);
    yield* page;
    if (page.length < SUBSCRIPTIONS_AT_ONCE) return;
    after = page.at(-1)!.id;
  }
}

async function findLastSequence(scope: Scope, plan_id: string, database: Database): Promise<number> {
  const [last] = await PriceModel.in(scope, database)
    .where({ entity_type: 'PLAN', entity_id: plan_id })
    .orderBy('sequence', 'desc')
    .limit(1);
  return last?.sequence ?? 0;
}

type SyncedSubscription = { id: string; author: Author };

/** Synchronizes a subscription. The counts are stored in the transaction of the change, so those of all attempts add up. */
async function syncWithin({ postgres }: Stores, place: RunReference, subject: SyncedSubscription): Promise<void> {
  await postgres.transaction(async (transaction) => {
    const done = await syncSubscription(transaction, place, subject);
    if (done === null) return;
    const { run, ended } = await lockRun(transaction, place);
    if (ended) throw new FarthingError('invalid_operation', `workflow ${run.id} has ended`);
    const counts = toCounts(run);
    await storeResult(transaction, place, {
      subscriptions_synced: counts.subscriptions_synced + 1,
      line_items_added: counts.line_items_added + done.added.length,
      line_items_ended: counts.line_items_ended + done.ended.length,
    });
  });
}

function toCounts({ result }: WorkflowRunModel): PlanSyncCounts {
  return { ...NONE, ...(result as PlanSyncCounts | null) };
}

/** Gives the subscription the prices of its plan; null if it has all of them, or is cancelled. */
export async function syncSubscription(
  database: Transaction,
  scope: Scope,
  subject: SyncedSubscription,
): Promise<PlanSync | null> {
  const { id, author } = subject;
  const subscription = await SubscriptionModel.fetch(scope, id, { database, lock: true });
  if (subscription.status !== 'published' || subscription.subscription_status === 'cancelled') return null;
  const gathered = await gatherPlanSync(database, subscription);
  const sync = computePlanSync({
    ...gathered,
    subscription,
    billed: toBilledSubscription(subscription),
    current: currentPeriod(subscription),
    now: author.now.getTime(),
  });
  const { synced_price_sequence } = sync;
  if (synced_price_sequence <= (subscription.synced_price_sequence ?? 0)) return null;
  await endLines(database, sync, author);
  await addLines(database, { subscription, sync, author, ...gathered });
  const record = await SubscriptionModel.change(subscription, { synced_price_sequence }, { by: author, database });
  await emit(database, 'subscription.updated', { record, by: author });
  return sync;
}

async function gatherPlanSync(database: Database, subscription: SubscriptionModel) {
  const { id, plan_id } = subscription;
  const plan_prices = await PriceModel.in(subscription, database)
    .where({ entity_type: 'PLAN', entity_id: plan_id })
    .orderBy('sequence');
  const own = await PriceModel.in(subscription, database).where({ entity_type: 'SUBSCRIPTION', entity_id: id });
  const lines = await SubscriptionLineItemModel.in(subscription, database).where('subscription_id', id);
  const invoiced = await listInvoicedSince(database, subscription, lines);
  const meters = await MeterModel.byId(
    subscription,
    plan_prices.map(({ meter_id }) => meter_id),
    database,
  );
  return {
    plan_prices: plan_prices as Price[],
    lines,
    overridden: new Set(own.map(toRootId)),
    invoiced,
    meters,
    reset_usage: new Map(Array.from(meters.values(), (meter) => [meter.id, priceReset(meter)])),
  };
}

/** Lists the lines that begin inside the running period and are on an invoice. Lines that began earlier count as invoiced anyway. */
async function listInvoicedSince(
  database: Database,
  subscription: SubscriptionModel,
  lines: readonly SubscriptionLineItemModel[],
): Promise<Set<string>> {
  const { start } = currentPeriod(subscription);
  const begun = lines.filter(({ start_date }) => toInstant(start_date) > start).map(({ id }) => id);
  if (begun.length === 0) return new Set();
  const charged = await InvoiceLineItemModel.in(subscription, database)
    .where('status', 'published')
    .whereIn('subscription_line_item_id', begun);
  const invoiceIds = charged.map(({ invoice_id }) => invoice_id);
  const invoices = await InvoiceModel.byId(subscription, invoiceIds, database);
  const isCharged = ({ invoice_id }: InvoiceLineItemModel) => {
    const invoice = invoices.get(invoice_id);
    return invoice?.status === 'published' && invoice.invoice_status !== 'VOIDED';
  };
  return new Set(charged.filter(isCharged).map(({ subscription_line_item_id: id }) => id ?? ''));
}

async function endLines(database: Database, { ended }: PlanSync, author: Author): Promise<void> {
  for (const { line, end_date, is_void } of ended) {
    const changes = is_void ? { end_date, status: 'deleted' as const } : { end_date, ends_with_price: true };
    await SubscriptionLineItemModel.change(line as SubscriptionLineItemModel, changes, { by: author, database });
  }
}

type SyncedLineAddition = Awaited<ReturnType<typeof gatherPlanSync>> & {
  subscription: SubscriptionModel;
  sync: PlanSync;
  author: Author;
};

/**
 * Returns the line with which the commitment of `follows` began. Returns null if the new line begins a commitment, for example because
 * `follows` is removed.
 */
function findCommitmentLine(follows: SyncedLine | null, { ended }: PlanSync): string | null {
  const isVoid = ended.some(({ line, is_void }) => is_void && line.id === follows?.id);
  if (!follows?.commitment_type) return null;
  return follows.commitment_line_id ?? (isVoid ? null : follows.id);
}

async function addLines(database: Transaction, addition: SyncedLineAddition): Promise<void> {
  const { subscription, sync, author, lines, meters } = addition;
  const plan = await PlanModel.fetch(subscription, subscription.plan_id, { database });
  const first = 1 + Math.max(-1, ...lines.map(({ position }) => position ?? -1));
  const records = sync.added.map(({ price, follows, ...added }, index) => ({
    ...buildLineItem({
      commitment: inheritCommitment(follows, price),
      price: { ...price, end_date: added.end_date },
      quantity: added.quantity,
      subscription,
      now: author.now.getTime(),
      entity: { entity_id: plan.id, entity_type: 'plan', name: plan.name },
      meter_name: meters.get(price.meter_id ?? '')?.name ?? null,
    }),
    ...createdBy(author),
    start_date: added.start_date,
    ends_with_price: added.ends_with_price,
    commitment_line_id: findCommitmentLine(follows, sync),
    period_anchor: added.period_anchor,
    subscription_phase_id: follows?.subscription_phase_id ?? null,
    follows_line_item_id: follows?.id ?? null,
    id: newId('subscription_line_item', author.now.getTime()),
    position: first + index,
    subscription_id: subscription.id,
    customer_id: subscription.customer_id,
  }));
  if (records.length === 0) return;
  const added = await SubscriptionLineItemModel.addAll(subscription, records, { database });
  await checkSharedMeters(database, subscription, added);
}
