/**
 * Edits an invoice that is not final yet (docs/rules/invoices.md, "Edits"). Requested lines replace the computed ones, and coupons are
 * applied to them again. Afterwards only a recalculation computes the invoice.
 */

import { Decimal, sumDecimals } from '../../../core/foundation/decimal.ts';
import { invalid, notAllowed } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import {
  type EditedLine,
  type EditInvoice,
  hasLineChanges,
  planEditedLines,
} from '../../../core/invoicing/invoice/edit.ts';
import { checkSum } from '../../../core/invoicing/invoice/one-off.ts';
import type { Invoice, InvoiceLineItem } from '../../../core/invoicing/invoice/record.ts';
import { deriveDraftStatus } from '../../../core/invoicing/invoice/skipped.ts';
import { omitAdjustments, parseAdjustments } from '../../../core/rating/adjustment-fields.ts';
import { isAfterEnd } from '../../../core/rating/after-end.ts';
import type { CouponInForce } from '../../../core/rating/discounts.ts';
import { type AdjustedLines, applyLineAdjustments } from '../../../core/rating/line-adjustments.ts';
import { totalsText } from '../../../core/rating/totals.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import type { Stores, Transaction } from '../../../storage/foundation/stores.ts';
import { CouponModel } from '../../../storage/models/catalog/coupon.ts';
import { CouponApplicationModel, deleteApplications } from '../../../storage/models/invoicing/coupon-application.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { deleteInvoiceLines, InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import { retaxInvoice } from '../../catalog/taxes/attach-rates.ts';
import { emit } from '../../foundation/emit.ts';
import { runBillingTransaction } from '../../foundation/transaction.ts';
import { checkInvoiceReferences } from '../../invoicing/invoices/check-invoice-references.ts';
import {
  type Computation,
  checkComputable,
  isDerivedFromSubscription,
} from '../../invoicing/invoices/compute-invoice.ts';
import { type LockedInvoice, lockInvoice } from '../../invoicing/invoices/lock-invoice.ts';
import { loadInvoiceCoupons } from '../../invoicing/invoices/requested-on-invoice.ts';
import { applicationRecords } from '../../invoicing/records/application-records.ts';
import { formatLineAdjustments, loadInvoiceLines } from '../../invoicing/records/invoice-records.ts';
import { toBilledSubscription } from '../../rating/billable-items.ts';
import { loadCouponsInForce } from '../../rating/coupons/coupons-in-force.ts';
import { countApplied, lockCoupons, returnRedemptions } from '../../rating/coupons/redeem.ts';
import { activateIfNothingDue } from '../effects.ts';

type EditInvoiceInput = { readonly invoice_id: string; readonly edit: EditInvoice; readonly author: Author };

export async function editInvoice(stores: Stores, scope: Scope, input: EditInvoiceInput): Promise<Computation> {
  const { invoice_id, edit, author } = input;
  if (edit.due_date && toInstant(edit.due_date) < author.now.getTime())
    throw invalid('due_date', 'must not lie in the past');
  return runBillingTransaction(stores, async (transaction) => {
    const locked = await lockInvoice(transaction, scope, invoice_id);
    checkComputable(locked.invoice);
    const before = await loadInvoiceLines(locked.invoice, transaction);
    checkRequestedSum(edit, before);
    const editing: InvoiceEditing = { ...locked, scope, edit, author, transaction, before };
    if (edit.prepared_tax_rates !== null)
      await retaxInvoice(
        locked.invoice,
        edit.prepared_tax_rates.map(({ id }) => id),
        editing,
      );
    const written = hasLineChanges(edit) ? await writeLines(editing) : { line_items: before, changes: {} };
    const invoice = await writeInvoice(editing, written);
    const isSkipped = invoice.invoice_status === 'SKIPPED';
    if (isSkipped) await activateIfNothingDue(stores, transaction, { scope, invoice_id, by: author });
    return { invoice: Object.assign(invoice, { line_items: written.line_items }), skipped: isSkipped, complete: true };
  });
}

type InvoiceEditing = LockedInvoice & {
  readonly scope: Scope;
  readonly edit: EditInvoice;
  readonly author: Author;
  readonly transaction: Transaction;
  readonly before: readonly InvoiceLineItemModel[];
};
type WrittenEdit = { readonly line_items: InvoiceLineItemModel[]; readonly changes: Partial<InvoiceModel> };

/**
 * Refuses to edit computed lines of an invoice that is not derived from the subscription alone, e.g. of a plan change: later computations
 * depend on its charges (docs/rules/invoices.md, "Edits").
 */
function checkEditable({ invoice, before }: InvoiceEditing): void {
  const isComputed = before.some(({ computed_from }) => computed_from);
  if (isComputed && !isDerivedFromSubscription(invoice))
    throw notAllowed(`the lines of an invoice of ${invoice.billing_reason} cannot be edited`, { id: invoice.id });
}

/** If sums are requested without lines, checks that they equal the sums of the existing lines. */
function checkRequestedSum(edit: EditInvoice, before: readonly InvoiceLineItem[]): void {
  if (edit.line_items === null) checkSum(edit, sumDecimals(before.map(({ amount }) => new Decimal(amount))));
}

async function writeLines(editing: InvoiceEditing): Promise<WrittenEdit> {
  checkEditable(editing);
  const { invoice, edit, transaction, scope, author, before } = editing;
  const { currency, customer_id, invoice_type } = invoice;
  const line_items = edit.line_items;
  await checkInvoiceReferences(scope, { customer_id, line_items }, transaction);
  const edited =
    line_items === null
      ? before.map((one): EditedLine => ({ kind: 'unchanged', before: one }))
      : planEditedLines(line_items, { currency, invoice_type, line_items: before });
  const records = edited.map((line, position) => buildLineRecord(line, { ...editing, position }));
  checkSum(edit, sumDecimals(records.map(({ amount }) => new Decimal(amount))));
  const retained = await loadRetainedCoupons(editing, edited);
  // Existing coupons are released before new ones are redeemed; all are locked first, in one order.
  await lockCoupons(await listNamedCoupons(editing), editing);
  await returnRedemptions(invoice, { transaction, author });
  await deleteApplications(invoice, invoice.id, transaction);
  const settled = await applyAdjustments(editing, { records, retained });
  await countApplied(settled.coupons_applied, editing);
  await deleteInvoiceLines(invoice, invoice.id, transaction);
  const lines = records.map((record, index) => ({ ...record, ...formatLineAdjustments(settled.adjustments[index]!) }));
  const written = await InvoiceLineItemModel.addAll(scope, lines, { database: transaction });
  const line_ids = written.map(({ id }) => id);
  const applications = applicationRecords(settled.coupons_applied, { invoice, line_ids, author });
  await CouponApplicationModel.addAll(scope, applications, { database: transaction });
  return { line_items: written, changes: { is_manually_edited: true, ...toInvoiceAmounts(invoice, settled) } };
}

type LineRecord = Partial<InvoiceLineItemModel> & Pick<InvoiceLineItem, 'amount' | 'price_type'>;

/** Builds the record of a line. An unchanged line retains its `computed_from`, so that later corrections are detected. */
function buildLineRecord(
  line: EditedLine,
  { invoice, author, position }: InvoiceEditing & { position: number },
): LineRecord {
  const { created_at, created_by, ...stamp } = createdBy(author);
  if (line.kind === 'unchanged') return { ...line.before, position };
  if (line.kind === 'changed') return { ...line.before, ...line.fields, ...stamp, position };
  const { plan_id, subscription_id, entity_id, entity_type, ...requested } = line.requested;
  // Drops fields that the service computes; parsing has refused requests that contain them (core/invoicing/invoice/one-off.ts).
  const { commitment_info, ...fields } = omitAdjustments(requested);
  return {
    ...stamp,
    ...fields,
    created_at,
    created_by,
    position,
    id: newId('invoice_line_item', author.now.getTime()),
    invoice_id: invoice.id,
    customer_id: invoice.customer_id,
    subscription_id: subscription_id ?? invoice.subscription_id ?? null,
    currency: invoice.currency,
    entity_id: entity_id ?? plan_id,
    entity_type: entity_type ?? (plan_id ? 'plan' : null),
  };
}

/** Lists the requested coupons, and the coupons that were applied before. */
async function listNamedCoupons({ invoice, edit, transaction }: InvoiceEditing): Promise<string[]> {
  const filter = { column: 'invoice_id', value: invoice.id, where: { status: 'published' } };
  const applications = await CouponApplicationModel.listBy(invoice, filter, transaction);
  const requested = [...(edit.invoice_coupons ?? []), ...(edit.line_item_coupons ?? [])];
  return [...requested, ...applications].map(({ coupon_id }) => coupon_id);
}

/**
 * Loads the applied coupons that remain if the edit names no coupons. Those of a subscription are not included: `loadStandingCoupons`
 * applies them again. On a manual invoice, where every coupon was requested, all remain.
 */
async function loadRetainedCoupons(editing: InvoiceEditing, edited: readonly EditedLine[]): Promise<CouponInForce[]> {
  const { invoice, edit, transaction } = editing;
  const hasCoupons = edit.invoice_coupons !== null || edit.line_item_coupons !== null;
  if (hasCoupons) return [];
  const filter = { column: 'invoice_id', value: invoice.id, where: { status: 'published' }, order: ['position', 'id'] };
  const applications = await CouponApplicationModel.listBy(invoice, filter, transaction);
  const isOwn = (one: CouponApplicationModel) => one.coupon_association_id === null || !hasStanding(editing);
  const own = applications.filter(isOwn);
  const coupons = await CouponModel.byId(
    invoice,
    own.map(({ coupon_id }) => coupon_id),
    transaction,
  );
  return own.flatMap(({ coupon_id, coupon_association_id, subscription_id, invoice_line_item_id }) => {
    const place = edited.findIndex((line) => line.kind !== 'new' && line.before.id === invoice_line_item_id);
    // The edit removed the discounted line, and its coupon with it.
    if (invoice_line_item_id !== null && place < 0) return [];
    const line = invoice_line_item_id === null ? null : String(place);
    const terms = { coupon: coupons.get(coupon_id)!, coupon_association_id, subscription_id };
    return [{ ...terms, line, start_ms: null, end_ms: null }];
  });
}

/** Whether the coupons of the subscription apply to the invoice, as they do to every invoice computed from a subscription. */
function hasStanding({ invoice, before }: InvoiceEditing): boolean {
  return (
    invoice.invoice_type === 'SUBSCRIPTION' &&
    isDerivedFromSubscription(invoice) &&
    before.some(({ computed_from }) => computed_from)
  );
}

type EditAdjustments = { readonly records: readonly LineRecord[]; readonly retained: readonly CouponInForce[] };

/** Taxes are computed at finalization. */
async function applyAdjustments(
  editing: InvoiceEditing,
  { records, retained }: EditAdjustments,
): Promise<AdjustedLines> {
  const { invoice, edit } = editing;
  const { currency, customer_id } = invoice;
  const lines = records.map(({ price_id = null, subscription_line_item_id = null }) => ({
    price_id,
    subscription_line_item_id,
  }));
  const requested = await loadInvoiceCoupons(edit, { lines, currency, customer_id }, editing);
  const named = new Set(requested.flatMap(({ coupon_association_id }) => coupon_association_id ?? []));
  const standing = await loadStandingCoupons(editing, records);
  const others = standing.filter(({ coupon_association_id }) => !named.has(coupon_association_id ?? ''));
  const charged = await loadChargedInstants(editing, records);
  const coupons = [...others, ...retained, ...requested];
  const isCredit = invoice.invoice_type === 'CREDIT';
  if (isCredit && coupons.length > 0) throw invalid('invoice_coupons', 'cannot take something off a credit');
  const given = records.map((record, index) => ({
    amount: new Decimal(record.amount),
    price_type: record.price_type ?? null,
    key: record.subscription_line_item_id ?? null,
    place: String(index),
    charged_ms: charged[index]!,
    ...(!isCredit && new Decimal(record.amount).isNegative() ? { credit_adjustments: toCreditedShares(record) } : {}),
  }));
  const amount_paid = new Decimal(invoice.amount_paid);
  return applyLineAdjustments(given, { currency, coupons, amount_paid });
}

async function loadStandingCoupons(editing: InvoiceEditing, records: readonly LineRecord[]): Promise<CouponInForce[]> {
  const { subscription, invoice, transaction } = editing;
  if (subscription === null || !hasStanding(editing)) return [];
  const ids = records.map(({ subscription_id }) => subscription_id).filter((id) => id !== subscription.id);
  const others = await SubscriptionModel.byId(invoice, ids, transaction);
  const subscriptions = [subscription, ...others.values()] as const;
  const late = isLate(invoice, subscription) ? { inside: 'usage' as const } : {};
  return loadCouponsInForce(transaction, { subscriptions, invoice_id: invoice.id, ...late });
}

/**
 * Whether the invoice is for a period after the end of its subscription, as billing decides it
 * (actions/invoicing/billing/gather-billing.ts).
 */
function isLate({ period_start, period_end }: InvoiceModel, subscription: SubscriptionModel): boolean {
  if (!period_start || !period_end) return false;
  const period = { start: toInstant(period_start), end: toInstant(period_end) };
  return isAfterEnd(period, toBilledSubscription(subscription));
}

/**
 * Loads the instant at which each line is charged: the start of its interval for an advance charge, otherwise the last instant. A line
 * without an end uses the end of the invoice's period.
 */
async function loadChargedInstants({ invoice, transaction }: InvoiceEditing, records: readonly LineRecord[]) {
  const ids = records.map((record) => record.subscription_line_item_id);
  const items = await SubscriptionLineItemModel.byId(invoice, ids, transaction);
  return records.map(({ subscription_line_item_id, period_start, period_end }) => {
    const isAdvance = items.get(subscription_line_item_id ?? '')?.invoice_cadence === 'ADVANCE';
    if (isAdvance && period_start) return toInstant(period_start);
    const end = period_end ?? invoice.period_end;
    if (!end) return null;
    return Math.max(period_start ? toInstant(period_start) : 0, toInstant(end) - 1);
  });
}

/**
 * Converts the discount, prepaid credits and tax of a credit line. They are fixed shares of the original charge, so edits of other lines do
 * not change them.
 */
function toCreditedShares(record: LineRecord) {
  return {
    ...parseAdjustments(record),
    taxes: (record.taxes ?? []).map((share) => ({ ...share, tax_amount: new Decimal(share.tax_amount) })),
  };
}

function toInvoiceAmounts(invoice: Invoice, settled: AdjustedLines): Partial<InvoiceModel> {
  const { subtotal, ...others } = totalsText(settled);
  const isCredit = invoice.invoice_type === 'CREDIT';
  const amounts = isCredit ? { ...others, subtotal, total: subtotal, amount_due: subtotal } : { ...others, subtotal };
  const { amount_paid: _paid, ...changed } = amounts;
  return {
    ...changed,
    invoice_status: deriveDraftStatus(invoice, settled),
  };
}

async function writeInvoice(
  { invoice, edit, author, transaction }: InvoiceEditing,
  { changes, line_items }: WrittenEdit,
) {
  const { description, due_date } = edit;
  const requested = { ...(description === null ? {} : { description }), ...(due_date === null ? {} : { due_date }) };
  const computed = { last_computed_at: author.now.toISOString() };
  const edited = await InvoiceModel.change(
    invoice,
    { ...changes, ...requested, ...computed },
    { by: author, database: transaction },
  );
  const isNew = invoice.invoice_status === 'SKIPPED' && edited.invoice_status === 'DRAFT';
  const record = { ...edited, line_items };
  await emit(transaction, isNew ? 'invoice.drafted' : 'invoice.update', { record, by: author });
  return edited;
}
