/** Loads the coupons in the request of a manual invoice (docs/rules/coupons.md, "On an invoice"). */

import { invalid } from '../../../core/foundation/error.ts';
import type { CreateInvoice, InvoiceLineItem as Invoiced } from '../../../core/invoicing/invoice/record.ts';
import { type CouponInForce, isUsableAgain } from '../../../core/rating/discounts.ts';
import { CouponModel } from '../../../storage/models/catalog/coupon.ts';
import { CouponAssociationModel } from '../../../storage/models/subscriptions/coupon-association.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { loadUses, toCouponInForce } from '../../rating/coupons/coupons-in-force.ts';
import { loadRedeemable, lockCoupons, type RedemptionWriting } from '../../rating/coupons/redeem.ts';
import { lockSubscriptions } from '../../subscriptions/lock-in-order.ts';

type InvoiceCouponsRequest = Pick<CreateInvoice, 'invoice_coupons' | 'line_item_coupons'> &
  Partial<Pick<CreateInvoice, 'coupons'>>;

type RequestedInvoiceCoupon = {
  readonly field: string;
  readonly named: string;
  readonly coupon_association_id: string | null;
  readonly line: string | null;
};

type CouponedInvoice = {
  readonly lines: readonly Pick<Invoiced, 'price_id' | 'subscription_line_item_id'>[];
  readonly currency: string;
  readonly customer_id: string;
};

/** Loads the coupons in the order of the request; their lines are identified by position. */
export async function loadInvoiceCoupons(
  request: InvoiceCouponsRequest,
  written: CouponedInvoice,
  redeeming: RedemptionWriting,
): Promise<CouponInForce[]> {
  const found: CouponInForce[] = [];
  const wanted = listInvoiceCoupons(request, written.lines);
  // Subscriptions are locked before coupons, as in every redemption for a subscription.
  await lockSubscriptions(redeeming.scope, await listRequestedSubscriptions(request, redeeming), redeeming.transaction);
  const own = wanted.filter(({ coupon_association_id }) => coupon_association_id === null);
  await lockCoupons(
    own.map(({ named }) => named),
    redeeming,
  );
  for (const requested of wanted) {
    const coupon = await (requested.coupon_association_id
      ? loadAttachedCoupon(requested, written, redeeming)
      : loadNewCoupon(requested, { ...written, found }, redeeming));
    const twice = found.some((one) => one.coupon.id === coupon.coupon.id && one.line === coupon.line);
    if (twice) throw invalid(requested.field, `coupon ${requested.named} is stated twice`);
    found.push(coupon);
  }
  return found;
}

/** Lists the subscriptions whose attached coupons the request names. */
export async function listRequestedSubscriptions(
  { invoice_coupons, line_item_coupons }: Pick<InvoiceCouponsRequest, 'invoice_coupons' | 'line_item_coupons'>,
  { scope, transaction }: Pick<RedemptionWriting, 'scope' | 'transaction'>,
): Promise<string[]> {
  const requested = [...(invoice_coupons ?? []), ...(line_item_coupons ?? [])];
  const ids = requested.flatMap(({ coupon_association_id }) => coupon_association_id ?? []);
  if (ids.length === 0) return [];
  const associations = await CouponAssociationModel.byId(scope, ids, transaction);
  return Array.from(associations.values(), ({ subscription_id }) => subscription_id);
}

function listInvoiceCoupons(request: InvoiceCouponsRequest, lines: CouponedInvoice['lines']): RequestedInvoiceCoupon[] {
  return [
    ...(request.coupons ?? []).map((named, index) => ({
      field: `coupons[${index}]`,
      named,
      coupon_association_id: null,
      line: null,
    })),
    ...(request.invoice_coupons ?? []).map(({ coupon_id: named, coupon_association_id }, index) => ({
      field: `invoice_coupons[${index}]`,
      named,
      coupon_association_id,
      line: null,
    })),
    ...(request.line_item_coupons ?? []).map(({ coupon_id: named, ...requested }, index) => {
      const field = `line_item_coupons[${index}]`;
      const { coupon_association_id, line_item_id, subscription_line_item_id } = requested;
      const line = findLinePlace(subscription_line_item_id ?? line_item_id, lines, `${field}.line_item_id`);
      return { field, named, coupon_association_id, line };
    }),
  ];
}

function findLinePlace(named: string, lines: CouponedInvoice['lines'], field: string): string {
  const places = lines.flatMap((line, index) =>
    [line.price_id, line.subscription_line_item_id, String(index)].includes(named) ? [String(index)] : [],
  );
  if (places.length !== 1) throw invalid(field, `names ${places.length} lines of the invoice, and must name one`);
  return places[0]!;
}

async function loadNewCoupon(
  { field, named, line }: RequestedInvoiceCoupon,
  { currency, found }: CouponedInvoice & { readonly found: readonly CouponInForce[] },
  redeeming: RedemptionWriting,
) {
  const isIt = ({ coupon: { id, coupon_code }, coupon_association_id }: CouponInForce) =>
    coupon_association_id === null && (id === named || coupon_code?.toLowerCase() === named.toLowerCase());
  const coupon = await loadRedeemable({ field, named, currency, before: found.filter(isIt).length }, redeeming);
  return { coupon, coupon_association_id: null, subscription_id: null, line, start_ms: null, end_ms: null };
}

/**
 * Uses a coupon that is attached to a subscription of the customer. The coupon was redeemed when it was attached, so
 * this use is not another redemption.
 */
async function loadAttachedCoupon(
  { field, named, coupon_association_id, line }: RequestedInvoiceCoupon,
  { currency, customer_id }: CouponedInvoice,
  { scope, transaction, author }: RedemptionWriting,
): Promise<CouponInForce> {
  const where = `${field}.coupon_association_id`;
  const database = transaction;
  const association = await CouponAssociationModel.fetchPublished(scope, coupon_association_id!, { database });
  const coupon = await CouponModel.fetch(scope, association.coupon_id, { database });
  if (coupon.id !== named && coupon.coupon_code !== named) throw invalid(where, `is of coupon ${coupon.id}`);
  // Every invoice on which the coupon may apply locks this subscription (loadCouponsInForce).
  const subscription = await SubscriptionModel.fetch(scope, association.subscription_id, { database });
  if (subscription.customer_id !== customer_id && subscription.invoicing_customer_id !== customer_id)
    throw invalid(where, `is of subscription ${subscription.id}, which is another customer's`);
  if (coupon.type === 'fixed' && coupon.currency !== currency)
    throw invalid(where, `is in ${coupon.currency}, the invoice in ${currency}`);
  const found = toCouponInForce(association, coupon);
  const now = author.now.getTime();
  if (found.start_ms! > now || (found.end_ms !== null && found.end_ms <= now))
    throw invalid(where, 'does not work now');
  const uses = await loadUses(transaction, [{ association, coupon }], { subscriptions: [subscription] });
  if (!isUsableAgain(coupon, uses.get(association.id)?.length ?? 0))
    throw invalid(where, 'has worked as often as it may');
  return { ...found, line, start_ms: null, end_ms: null };
}
