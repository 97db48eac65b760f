/**
 * The real-time balance of a wallet (docs/rules/wallets.md, "The balance in real time"). It is computed from the ledger, the unpaid
 * invoices, and the charge of each running period, which is computed as the invoice will be. If the pipeline runs in this process, incoming
 * usage updates the cached balance (docs/decisions/0007-cached-answers.md).
 */

import {
  computeRealTimeBalance,
  type RealTimeBalance,
  type UnpaidInvoice,
} from '../../../core/credits/wallet/real-time.ts';
import { Decimal, sumDecimals, ZERO } from '../../../core/foundation/decimal.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Milliseconds } from '../../../core/foundation/time/instant.ts';
import { sumDiscounts } from '../../../core/rating/adjustment-fields.ts';
import { deriveAddressee } from '../../../core/subscriptions/addressee.ts';
import type { CacheEntry, ComputedAnswer } from '../../../storage/cache/cache-entry.ts';
import { type CacheView, findCached, loadCached } from '../../../storage/cache/cached-answers.ts';
import type { GatherContext } from '../../../storage/cache/gather-batch-loader.ts';
import { listBatched } from '../../../storage/concurrency/batched.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { WalletModel } from '../../../storage/models/credits/wallet.ts';
import { WalletTransactionModel } from '../../../storage/models/credits/wallet-transaction.ts';
import { toBatchKey } from '../../../storage/models/foundation/statements.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { planCurrentCharge } from '../invoices/preview-invoice.ts';
import { buildStandaloneChild } from './invoiced-alone.ts';

/** A real-time balance that contains all usage accepted before the instant `as_of`. */
export type RealTimeSnapshot = RealTimeBalance & { readonly as_of: string };

export async function loadRealTimeBalance(stores: Stores, wallet: WalletModel, now: Date): Promise<RealTimeSnapshot> {
  if (!canOwe(wallet)) return { ...computeRealTimeBalance(wallet, NOTHING), as_of: now.toISOString() };
  const { tenant_id, environment_id } = wallet;
  const query = { tenant_id, environment_id, key: toChargesKey(wallet), now };
  const { answer, as_of } = await loadCached(stores, query, (gathering) => gatherOwed(stores, wallet, gathering));
  return { ...computeRealTimeBalance(wallet, answer), as_of };
}

/** Reads the balance without the cache, for decisions about what may be spent. */
export async function loadCurrentRealTimeBalance(
  stores: Stores,
  wallet: WalletModel,
  now: Date,
): Promise<RealTimeBalance> {
  const gathering = { database: stores.postgres, now };
  return computeRealTimeBalance(
    wallet,
    canOwe(wallet) ? (await gatherOwed(stores, wallet, gathering)).answer : NOTHING,
  );
}

type WalletBalance = { readonly wallet: WalletModel; readonly realTime: RealTimeSnapshot };

/** Returns the wallet and its owed amounts if both are cached, else undefined. */
export function findCachedOwed(view: CacheView, id: string): { wallet: WalletModel; owed: WalletOwed } | undefined {
  const wallet = view.find<WalletModel>(toWalletKey(id));
  if (wallet === undefined) return undefined;
  const owed = canOwe(wallet) ? view.find<WalletOwed>(toChargesKey(wallet)) : NOTHING;
  return owed && { wallet, owed };
}

/** Returns the wallet and its balance, and caches them if they were not cached. */
export async function loadWalletBalance(
  stores: Stores,
  scope: Scope,
  { id, now }: { id: string; now: Date },
): Promise<WalletBalance> {
  const { tenant_id, environment_id } = scope;
  const { answer: wallet } = await loadCached(
    stores,
    { tenant_id, environment_id, key: toWalletKey(id), now },
    async ({ database }) => ({ answer: await WalletModel.fetch(scope, id, { database }) }),
  );
  return { wallet, realTime: await loadRealTimeBalance(stores, wallet, now) };
}

/** Amounts owed for the running periods and for unpaid invoices. */
type WalletOwed = { readonly current_usage: Decimal; readonly unpaid: readonly UnpaidInvoice[] };
type OwingCustomer = Scope & Pick<WalletModel, 'customer_id' | 'currency'>;
const NOTHING: WalletOwed = { current_usage: ZERO, unpaid: [] };

/**
 * Whether usage and unpaid invoices reduce the real-time balance of the wallet. That of a postpaid wallet equals its balance, and that of
 * an inactive wallet is 0.
 */
function canOwe({ wallet_type, wallet_status }: WalletModel): boolean {
  return wallet_type === 'PRE_PAID' && wallet_status === 'active';
}

function toWalletKey(id: string): string {
  return `wallet ${id}`;
}

function toChargesKey({ customer_id, currency }: OwingCustomer): string {
  return `charges ${customer_id} ${currency}`;
}

const CHARGES = /^\S+ charges (\S+) (\S+)$/;

/** Describes how cached charges differ from a preview. Null if the cache entry has no charges or is not valid now. */
export async function compareCachedCharges(stores: Stores, entry: CacheEntry, now: Date): Promise<string[] | null> {
  const [, customer_id, currency] = CHARGES.exec(entry.key) ?? [];
  if (customer_id === undefined || currency === undefined) return null;
  const query = { ...entry.scope, key: toChargesKey({ ...entry.scope, customer_id, currency }), now };
  let differs: string | null = null;
  // The comparison is repeated, because usage that arrives between its two reads is no fault of the cache.
  for (let tries = 0; tries < 3; tries++) {
    const found = await findCached<WalletOwed>(stores, query);
    if (found === undefined) return null;
    const { answer } = await gatherOwed(
      { ...stores, usage_cache: undefined },
      { ...entry.scope, customer_id, currency },
      { database: stores.postgres, now },
    );
    const [cached, recomputed] = [JSON.stringify(found), JSON.stringify(answer)];
    if (cached === recomputed) return [];
    differs = `${entry.scope.tenant_id} ${entry.scope.environment_id} ${customer_id} ${currency}: ${cached} in memory, a preview says ${recomputed}`;
  }
  return differs === null ? [] : [differs];
}

async function gatherOwed(
  stores: Stores,
  of: OwingCustomer,
  gathering: GatherContext,
): Promise<ComputedAnswer<WalletOwed>> {
  // Usage is read before invoices. A charge that a concurrent finalization invoices between the two reads is therefore not missed.
  const { running, until_ms } = await gatherCurrentUsage(stores, of, gathering);
  const unpaid = await gatherUnpaid(of, gathering.database);
  const owed = (usage: readonly Decimal[]): WalletOwed => ({ current_usage: sumDecimals(usage), unpaid });
  const answer = owed(running.map((one) => one.answer));
  const parts = running.flatMap(({ again }) => again ?? []);
  const late = running.flatMap(({ late_before_ms }) => late_before_ms ?? []);
  return {
    answer,
    until_ms,
    ...(late.length === 0 ? {} : { late_before_ms: Math.max(...late) as Milliseconds }),
    ...(parts.length < running.length ? {} : { again: (read) => owed(parts.map((part) => part(read))) }),
  };
}

/** Gathers the usage of the running periods, after coupons. The usage of grouped subscriptions is charged to their parent. */
async function gatherCurrentUsage(
  stores: Stores,
  of: OwingCustomer,
  { database, now }: GatherContext,
): Promise<{ running: ComputedAnswer<Decimal>[]; until_ms: Milliseconds }> {
  const { customer_id } = of;
  const found = await SubscriptionModel.chargedTo(of, of, database);
  const charged = found.filter((one) => deriveAddressee(one) === customer_id);
  const { invoiced, starts_ms } = await listInvoiced(of, charged, { database, now });
  const running: ComputedAnswer<Decimal>[] = [];
  for (const subscription of invoiced) running.push(await planCurrentCharge(stores, subscription, { database, now }));
  const ends_ms = running.flatMap(({ until_ms }) => until_ms ?? []);
  const coming_ms = [...starts_ms, ...ends_ms].filter((at_ms) => at_ms > now.getTime());
  return { running, until_ms: Math.min(...coming_ms) };
}

async function listUnpaidInvoices(
  of: Scope & Pick<OwingCustomer, 'currency'>,
  customer_ids: readonly string[],
  database: Database,
): Promise<InvoiceModel[]> {
  const purchases = WalletTransactionModel.in(of, database)
    .where({ transaction_reason: 'PURCHASED_CREDIT_INVOICED', reference_type: 'INVOICE' })
    .whereIn('customer_id', [...customer_ids])
    .select('reference_id');
  return InvoiceModel.in(of, database)
    .where({ currency: of.currency, status: 'published' })
    .whereIn('customer_id', [...customer_ids])
    .whereIn('invoice_status', ['DRAFT', 'FINALIZED'])
    .where('amount_remaining', '>', 0)
    .where('invoice_type', '<>', 'CREDIT')
    .whereNotIn('id', purchases);
}

/**
 * Lists the subscriptions with their own invoices. A grouped one is included if it is invoiced separately after its
 * parent's end. `starts_ms` has the instants at which this list changes.
 */
async function listInvoiced(scope: Scope, charged: readonly SubscriptionModel[], { database, now }: GatherContext) {
  const grouped = charged.filter(({ subscription_type }) => subscription_type === 'grouped_invoicing');
  const starts_ms: Milliseconds[] = [];
  if (grouped.length === 0) return { invoiced: charged, starts_ms };
  const ids = grouped.flatMap(({ parent_subscription_id }) => parent_subscription_id ?? []);
  const parents = await SubscriptionModel.byId(scope, ids, database);
  const invoiced = charged.flatMap((one) => {
    if (one.subscription_type !== 'grouped_invoicing') return one;
    const parent = parents.get(one.parent_subscription_id!);
    const alone = parent && buildStandaloneChild(one, { parent, now });
    if (alone?.starts_ms !== undefined) starts_ms.push(alone.starts_ms);
    return alone?.child ?? [];
  });
  return { invoiced, starts_ms };
}

/**
 * Lists the customer's unpaid invoices, including drafts, because the customer will have to pay these too. An invoice
 * that buys credits is not counted.
 */
async function gatherUnpaid(of: OwingCustomer, database: Database): Promise<UnpaidInvoice[]> {
  const { customer_id, currency } = of;
  const key = toBatchKey('unpaid', InvoiceModel, of.tenant_id, of.environment_id, currency);
  const toCustomerId = (invoice: InvoiceModel) => invoice.customer_id;
  const invoices = await listBatched(database, { key, values: [customer_id], getKey: toCustomerId }, (customer_ids) =>
    listUnpaidInvoices(of, customer_ids, database),
  );
  const ids = invoices.map(({ id }) => id);
  const lines = ids.length === 0 ? [] : await InvoiceLineItemModel.in(of, database).whereIn('invoice_id', ids);
  return invoices.map((invoice) => ({
    amount_paid: new Decimal(invoice.amount_paid),
    amount_remaining: new Decimal(invoice.amount_remaining),
    lines: lines
      .filter(({ invoice_id }) => invoice_id === invoice.id)
      .map((line) => ({
        price_type: line.price_type ?? null,
        amount: new Decimal(line.amount),
        credits_applied: new Decimal(line.prepaid_credits_applied),
        discount: sumDiscounts(line),
      })),
  }));
}
