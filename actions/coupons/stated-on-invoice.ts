/** The coupons that a client states with an invoice that it writes itself (docs/rules/coupons.md, "On an invoice"). */
import { type CouponInForce, isUsableAgain } from '../../core/coupon/discounts.ts';
import { invalid } from '../../core/error.ts';
import type { CreateInvoice, InvoiceLineItem as Invoiced } from '../../core/invoice/record.ts';
import { CouponModel } from '../../storage/models/coupon.ts';
import { CouponAssociationModel } from '../../storage/models/coupon-association.ts';
import { SubscriptionModel } from '../../storage/models/subscription.ts';
import { holdSubscriptions } from '../subscriptions/hold-in-order.ts';
import { inForce, usesOf } from './coupons-in-force.ts';
import { holdCoupons, type Redeeming, redeemable } from './redeem.ts';

type Stating = Pick<CreateInvoice, 'invoice_coupons' | 'line_item_coupons'> & Partial<Pick<CreateInvoice, 'coupons'>>;

type Stated = {
  readonly field: string;
  readonly named: string;
  readonly coupon_association_id: string | null;
  readonly line: string | null;
};

type Written = {
  readonly lines: readonly Pick<Invoiced, 'price_id' | 'subscription_line_item_id'>[];
  readonly currency: string;
  readonly customer_id: string;
};

/** In the order of the request; lines are keyed by their place. */
export async function couponsOnInvoice(
  request: Stating,
  written: Written,
  redeeming: Redeeming,
): Promise<CouponInForce[]> {
  const found: CouponInForce[] = [];
  const wanted = statedCoupons(request, written.lines);
  // Before the coupons, as everybody does who redeems one for a subscription.
  await holdSubscriptions(redeeming.scope, await subscriptionsStated(request, redeeming), redeeming.transaction);
  const own = wanted.filter(({ coupon_association_id }) => coupon_association_id === null);
  await holdCoupons(
    own.map(({ named }) => named),
    redeeming,
  );
  for (const stated of wanted) {
    const coupon = await (stated.coupon_association_id
      ? attached(stated, written, redeeming)
      : redeemed(stated, { ...written, found }, redeeming));
    const twice = found.some((one) => one.coupon.id === coupon.coupon.id && one.line === coupon.line);
    if (twice) throw invalid(stated.field, `coupon ${stated.named} is stated twice`);
    found.push(coupon);
  }
  return found;
}

/** Those whose coupons are stated. */
export async function subscriptionsStated(
  { invoice_coupons, line_item_coupons }: Pick<Stating, 'invoice_coupons' | 'line_item_coupons'>,
  { scope, transaction }: Pick<Redeeming, 'scope' | 'transaction'>,
): Promise<string[]> {
  const stated = [...(invoice_coupons ?? []), ...(line_item_coupons ?? [])];
  const ids = stated.flatMap(({ coupon_association_id }) => coupon_association_id ?? []);
  if (ids.length === 0) return [];
  const associations = await CouponAssociationModel.byId(scope, ids, transaction);
  return Array.from(associations.values(), ({ subscription_id }) => subscription_id);
}

function statedCoupons(request: Stating, lines: Written['lines']): Stated[] {
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
    ...(request.line_item_coupons ?? []).map(({ coupon_id: named, ...stated }, index) => {
      const field = `line_item_coupons[${index}]`;
      const { coupon_association_id, line_item_id, subscription_line_item_id } = stated;
      const line = placeOf(subscription_line_item_id ?? line_item_id, lines, `${field}.line_item_id`);
      return { field, named, coupon_association_id, line };
    }),
  ];
}

function placeOf(named: string, lines: Written['lines'], field: string): string {
  const places = lines.flatMap((line, index) =>
    [line.price_id, line.subscription_line_item_id, String(index)].includes(named) ? [String(index)] : [],
  );
  if (places.length !== 1) throw invalid(field, `names ${places.length} lines of the invoice, and must name one`);
  return places[0]!;
}

async function redeemed(
  { field, named, line }: Stated,
  { currency, found }: Written & { readonly found: readonly CouponInForce[] },
  redeeming: Redeeming,
) {
  const isIt = ({ coupon: { id, coupon_code }, coupon_association_id }: CouponInForce) =>
    coupon_association_id === null && (id === named || coupon_code?.toLowerCase() === named.toLowerCase());
  const coupon = await redeemable({ field, named, currency, before: found.filter(isIt).length }, redeeming);
  return { coupon, coupon_association_id: null, subscription_id: null, line, start_ms: null, end_ms: null };
}

/** As a subscription of the customer has it: a use of it, and no redemption of its own. */
async function attached(
  { field, named, coupon_association_id, line }: Stated,
  { currency, customer_id }: Written,
  { scope, transaction, author }: Redeeming,
): Promise<CouponInForce> {
  const where = `${field}.coupon_association_id`;
  const database = transaction;
  const association = await CouponAssociationModel.fetchPublished(scope, coupon_association_id!, { database });
  const coupon = await CouponModel.fetch(scope, association.coupon_id, { database });
  if (coupon.id !== named && coupon.coupon_code !== named) throw invalid(where, `is of coupon ${coupon.id}`);
  // Its row is held by whoever makes another invoice on which the coupon may work (couponsOnInvoice).
  const subscription = await SubscriptionModel.fetch(scope, association.subscription_id, { database });
  if (subscription.customer_id !== customer_id && subscription.invoicing_customer_id !== customer_id)
    throw invalid(where, `is of subscription ${subscription.id}, which is another customer's`);
  if (coupon.type === 'fixed' && coupon.currency !== currency)
    throw invalid(where, `is in ${coupon.currency}, the invoice in ${currency}`);
  const found = inForce(association, coupon);
  const now = author.now.getTime();
  if (found.start_ms! > now || (found.end_ms !== null && found.end_ms <= now))
    throw invalid(where, 'does not work now');
  const uses = await usesOf(transaction, [{ association, coupon }], { subscriptions: [subscription] });
  if (!isUsableAgain(coupon, uses.get(association.id)?.length ?? 0))
    throw invalid(where, 'has worked as often as it may');
  return { ...found, line, start_ms: null, end_ms: null };
}
