/**
 * Plans an invoice from the stores. Each reason for an invoice has its own planner; all of them gather by gather-billing.ts and plan the
 * lines in core. `database` is the transaction that will write the plan, or the pool for a preview.
 */

import type { Milliseconds } from '../../../core/foundation/time/instant.ts';
import type { ReferencePoint } from '../../../core/rating/charges.ts';
import type { InvoiceTerms } from '../../../core/rating/line-adjustments.ts';
import type { PlannedLine } from '../../../core/rating/line-amount.ts';
import {
  buildInvoicePlan,
  type InvoicePlan,
  type LinePlanInput,
  planCreditLines,
  planFollowedLines,
  planLines,
  planThreshold,
  planThresholdCharges,
} from '../../../core/rating/plan-invoice.ts';
import { hasReachedThreshold } from '../../../core/rating/threshold.ts';
import { loadAll } from '../../../storage/concurrency/batched.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { inSpan, inSyncSpan } from '../../../tracing/spans.ts';
import { loadRatesInForce, type TaxableInvoice } from '../../catalog/taxes/rates-in-force.ts';
import { listPreviewWallets } from '../../credits/wallets/prepaid-wallets.ts';
import { type BillableItem, gatherItems, toBilledSubscription } from '../../rating/billable-items.ts';
import { loadCouponsInForce } from '../../rating/coupons/coupons-in-force.ts';
import { loadOwnMembers } from '../../rating/members.ts';
import {
  createMeasure,
  type EarlierInvoices,
  type GatheredCharges,
  gatherCommitments,
  gatherInvoice,
  type InvoiceBasis,
  type InvoiceSubject,
  listInvoicedElsewhere,
  loadMeasuredUsage,
} from './gather-billing.ts';
import { gatherClosedCharges, gatherInvoicedLines, isCorrected, subtractReturned } from './gather-closed-charges.ts';
import type { InvoiceBefore } from './invoice-group.ts';
import { isTaxedBeforeCredits } from './tax-final.ts';

export type PlannedInvoice = { readonly plan: InvoicePlan<BillableItem> } & Omit<GatheredCharges, 'input'>;

/** Basis of a new invoice: it replaces no invoice, follows no other planned invoice, and checks earlier charges. */
const NEW = { before: null, earlier: null, is_settled: false } as const;

/** Plans the advance charges of the first period, or of the first paid period after a trial. */
export function planOpeningInvoice(
  stores: Stores,
  database: Database,
  subject: InvoiceSubject,
): Promise<PlannedInvoice> {
  return gatherAndPlan(stores, database, subject, { ...NEW, reference: 'period_start' });
}

/** Plans the arrears of a period that is over and the advance charges of the next. `is_settled`: see `InvoiceBasis`. */
export function planPeriodInvoice(
  stores: Stores,
  database: Database,
  { is_settled, ...subject }: InvoiceSubject & Pick<InvoiceBasis, 'is_settled'>,
): Promise<PlannedInvoice> {
  return gatherAndPlan(stores, database, subject, { ...NEW, reference: 'period_end', is_settled });
}

/** Plans the arrears up to a cancellation, which ends the period. */
export function planFinalInvoice(stores: Stores, database: Database, subject: InvoiceSubject): Promise<PlannedInvoice> {
  return gatherAndPlan(stores, database, subject, { ...NEW, reference: 'cancel' });
}

/** Plans only the credits of an invoice whose arrears are forgiven. */
export function planForgivenInvoice(
  stores: Stores,
  database: Database,
  subject: InvoiceSubject,
): Promise<PlannedInvoice> {
  return gatherAndPlan(
    stores,
    database,
    subject,
    { ...NEW, reference: 'cancel' },
    { planMemberLines: planCreditLines },
  );
}

/** Plans the invoice of usage that arrived after the end of the subscription. */
export function planLateInvoice(stores: Stores, database: Database, subject: InvoiceSubject): Promise<PlannedInvoice> {
  return gatherAndPlan(stores, database, subject, { ...NEW, reference: 'late' });
}

/** Plans an existing invoice that is computed again, or a void one whose period is billed again. It has the same subscriptions. */
export function planRecomputedInvoice(
  stores: Stores,
  database: Database,
  { reference, before, ...subject }: InvoiceSubject & { reference: ReferencePoint; before: InvoiceBefore },
): Promise<PlannedInvoice> {
  return gatherAndPlan(stores, database, subject, { ...NEW, reference, before });
}

/** Plans the invoice of the running period as of now, before taxes and credits. */
export function planRunningInvoice(
  stores: Stores,
  database: Database,
  subject: InvoiceSubject,
): Promise<PlannedInvoice> {
  return gatherAndPlan(stores, database, subject, { ...NEW, reference: 'preview' });
}

/** Outcome of a plan change at the end of the period. A preview executes the change in a transaction and rolls it back. */
export type PreviewedChange = {
  readonly before: InvoiceBefore;
  readonly credits: readonly PlannedLine<BillableItem>[];
};

type PreviewInput = InvoiceSubject & {
  /** `period_start` for an opening invoice, `preview` for the invoice of a period. */
  readonly reference: 'period_start' | 'preview';
  readonly taxed: Pick<TaxableInvoice, 'customer_id' | 'subscription_id' | 'invoice_type' | 'at'>;
  readonly change: PreviewedChange | null;
  readonly earlier: EarlierInvoices | null;
  /** True if another invoice is planned after this one. */
  readonly is_followed: boolean;
};

/** Plans the next invoice as it will be when final, with the taxes and credits of that time. */
export async function planPreviewInvoice(
  stores: Stores,
  database: Database,
  { reference, taxed, change, earlier, is_followed, ...subject }: PreviewInput,
): Promise<PlannedInvoice> {
  const loadFinal = (connected: Database) => loadFinalTerms(connected, subject, { reference, taxed });
  const basis = { reference, before: change?.before ?? null, earlier, is_settled: false };
  const planMemberLines = is_followed ? planFollowedLines : planLines;
  return gatherAndPlan(stores, database, subject, basis, {
    planMemberLines,
    credits: change?.credits ?? [],
    loadFinal,
  });
}

/** Plans an invoice of the running period's usage that is not invoiced yet, until `period.end`; null below the threshold. */
export async function planThresholdInvoice(
  stores: Stores,
  database: Database,
  subject: InvoiceSubject,
): Promise<InvoicePlan<BillableItem> | null> {
  const { subscription, period, now } = subject;
  const items = await gatherItems(database, subscription, { at: now });
  const lines = await gatherInvoicedLines(database, subscription);
  const charged = {
    subscription: toBilledSubscription(subscription),
    items,
    period,
    reference: 'preview' as const,
    invoiced: listInvoicedElsewhere(lines),
  };
  const members = await loadOwnMembers(database, subscription);
  const { measure } = createMeasure(stores, database, { ...subject, members });
  const usage = await loadMeasuredUsage(planThresholdCharges(charged), measure);
  const committed = await gatherCommitments(database, subscription, { ...NEW, items, lines, later: [] });
  const coupons = await loadCouponsInForce(database, { subscriptions: [subscription], inside: 'usage' });
  const { currency } = subscription;
  const input = { ...charged, ...committed, currency, usage, closed: [], coupons };
  if (!hasReachedThreshold(subscription.auto_invoice_threshold ?? null, planThreshold(input).subtotal)) return null;
  // Closed periods are read only now, because most subscriptions are below the threshold.
  const corrected = await isCorrected(database, lines);
  const measured = await gatherClosedCharges({ lines, items, before: period.end, corrected }, measure);
  return planThreshold({ ...input, closed: await subtractReturned(database, measured, lines) });
}

/** Terms that apply only when the invoice becomes final; a draft is planned without them. */
type FinalTerms = Pick<InvoiceTerms, 'rates' | 'prepaid' | 'taxes_before_credits'>;

type LinePlanning = {
  readonly planMemberLines: (input: LinePlanInput<BillableItem>) => readonly PlannedLine<BillableItem>[];
  /** Lines placed before the planned ones. */
  readonly credits: readonly PlannedLine<BillableItem>[];
  readonly loadFinal: (database: Database) => Promise<FinalTerms>;
};

function gatherAndPlan(
  stores: Stores,
  database: Database,
  subject: InvoiceSubject,
  basis: InvoiceBasis,
  { planMemberLines = planLines, credits = [], loadFinal = async () => ({}) }: Partial<LinePlanning> = {},
): Promise<PlannedInvoice> {
  return inSpan('invoice.plan', {}, async () => {
    const input = { subject, basis, loadTerms: loadFinal };
    const { members, coupons, terms } = await gatherInvoice(stores, database, input);
    const { currency } = subject.subscription;
    const plan = inSyncSpan('invoice.price', () => {
      const lines = members.flatMap(({ input }) => planMemberLines(input));
      return buildInvoicePlan([...credits, ...lines], { ...terms, currency, coupons });
    });
    const [{ is_settled }, ...others] = members;
    return { plan, usage_as_of_ms: findEarliest(members), is_settled: is_settled && others.length === 0 };
  });
}

function findEarliest(members: readonly GatheredCharges[]): Milliseconds | null {
  const instants = members.flatMap(({ usage_as_of_ms }) => usage_as_of_ms ?? []);
  return instants.length === 0 ? null : Math.min(...instants);
}

/** Loads the terms that apply at finalization: tax rates, and the credits that would pay part of the invoice. */
async function loadFinalTerms(
  database: Database,
  { subscription, period, now }: InvoiceSubject,
  { reference, taxed }: Pick<PreviewInput, 'reference' | 'taxed'>,
): Promise<FinalTerms> {
  // An invoice that opens a period becomes final at the period's start, any other at its end.
  const at_ms = reference === 'period_start' ? Math.min(period.end, now.getTime()) : period.end;
  const { tenant_id, environment_id, currency } = subscription;
  const [rates, prepaid] = await loadAll(database, [
    (connected) => loadRatesInForce(connected, { tenant_id, environment_id, currency, ...taxed }),
    (connected) => listPreviewWallets(connected, subscription, { customer_id: taxed.customer_id, currency, at_ms }),
  ]);
  return {
    rates,
    prepaid,
    taxes_before_credits: rates.length > 0 && (await isTaxedBeforeCredits(subscription, database)),
  };
}
