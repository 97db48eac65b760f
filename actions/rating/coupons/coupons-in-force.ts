/**
 * Loads the coupons of subscriptions that may discount an invoice (docs/rules/coupons.md, "On an invoice"), in the order of their
 * attachment. A writing caller has locked the subscription: its invoices are created one after the other, so a coupon of cadence `once`
 * discounts only one of them.
 */

import { groupBy } from '../../../core/foundation/group-by.ts';
import { type Milliseconds, toInstant } from '../../../core/foundation/time/instant.ts';
import type { Period } from '../../../core/foundation/time/period.ts';
import type { BillingReason } from '../../../core/invoicing/invoice/record.ts';
import { type CouponInForce, isUsableAgain } from '../../../core/rating/discounts.ts';
import type { CouponUses } from '../../../core/rating/invoices-to-come.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { CouponModel } from '../../../storage/models/catalog/coupon.ts';
import { CouponApplicationModel } from '../../../storage/models/invoicing/coupon-application.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { CouponAssociationModel } from '../../../storage/models/subscriptions/coupon-association.ts';
import type { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';

type CouponInvoiceContext = {
  /** The invoiced subscription first, then the others on the invoice; of their coupons, only those on lines apply. */
  readonly subscriptions: readonly [SubscriptionModel, ...SubscriptionModel[]];
  /** Id of an invoice that is recomputed: its own coupon uses are not counted. */
  readonly invoice_id?: string | undefined;
  /** Uses on invoices of earlier periods that are planned with this one, but not created yet. */
  readonly since?: CouponUses | undefined;
  /** Set for an invoice inside a period: 'usage' if it charges the usage so far, or the running period that a change settles. */
  readonly inside?: 'usage' | Period;
  /** Lines that the invoice charges and that are not written yet. */
  readonly begun?: readonly FollowingLine[];
};

type FollowingLine = Pick<SubscriptionLineItemModel, 'id' | 'follows_line_item_id'>;

type AttachedCoupon = { readonly association: CouponAssociationModel; readonly coupon: CouponModel };

export async function loadCouponsInForce(database: Database, of: CouponInvoiceContext): Promise<CouponInForce[]> {
  const attached = await listAttachedCoupons(database, of.subscriptions);
  const uses = await loadUses(database, attached, of);
  const followers = await loadFollowers(database, attached, of);
  return attached.flatMap(({ association, coupon }) => {
    const used = uses.get(association.id) ?? [];
    const works = worksOn({ coupon, uses: used }, { inside: of.inside, since: of.since?.get(association.id) });
    if (!works) return [];
    const named = followers.get(association.subscription_line_item_id ?? '');
    return [
      {
        ...toCouponInForce(association, coupon),
        uses: used.length,
        ...(named ? { followers: named } : {}),
        is_returning: isReturning(coupon, of.inside),
      },
    ];
  });
}

/** Loads the successors of each line that a coupon names; queries only if a coupon names a line. */
async function loadFollowers(
  database: Database,
  attached: readonly AttachedCoupon[],
  { subscriptions, begun = [] }: CouponInvoiceContext,
): Promise<Map<string, Set<string>>> {
  const named = new Set(attached.flatMap(({ association }) => association.subscription_line_item_id ?? []));
  if (named.size === 0) return new Map();
  const written = await SubscriptionLineItemModel.in(subscriptions[0], database)
    .whereIn(
      'subscription_id',
      subscriptions.map(({ id }) => id),
    )
    .whereNotNull('follows_line_item_id')
    .select('id', 'follows_line_item_id');
  const lines: FollowingLine[] = [...written, ...begun.filter((line) => line.follows_line_item_id)];
  const next = groupBy(lines, ({ follows_line_item_id }) => follows_line_item_id!);
  const behind = (id: string): string[] => (next.get(id) ?? []).flatMap((line) => [line.id, ...behind(line.id)]);
  return new Map([...named].map((id) => [id, new Set(behind(id))]));
}

export function toCouponInForce(association: CouponAssociationModel, coupon: CouponModel): CouponInForce {
  return {
    coupon,
    coupon_association_id: association.id,
    subscription_id: association.subscription_id,
    line: association.subscription_line_item_id,
    start_ms: toInstant(association.start_date),
    end_ms: association.end_date === null ? null : toInstant(association.end_date),
  };
}

async function listAttachedCoupons(
  database: Database,
  [own, ...others]: CouponInvoiceContext['subscriptions'],
): Promise<AttachedCoupon[]> {
  const lists = [];
  for (const { id, tenant_id, environment_id } of [own, ...others]) {
    const filter = {
      column: 'subscription_id',
      value: id,
      where: { status: 'published' },
      order: ['created_at', 'id'],
    };
    lists.push(await CouponAssociationModel.listBy({ tenant_id, environment_id }, filter, database));
  }
  const associations = lists.flatMap((list, index) =>
    list.filter(({ subscription_line_item_id }) => index === 0 || subscription_line_item_id !== null),
  );
  if (associations.length === 0) return [];
  const coupons = await CouponModel.byId(
    own,
    associations.map(({ coupon_id }) => coupon_id),
    database,
  );
  return associations.map((association) => ({ association, coupon: coupons.get(association.coupon_id)! }));
}

/**
 * Loads the invoices that count as uses of each coupon association, except the invoice `invoice_id`. A coupon of cadence `forever` needs
 * no count.
 */
export async function loadUses(
  database: Database,
  attached: readonly AttachedCoupon[],
  { subscriptions, invoice_id }: CouponInvoiceContext,
): Promise<Map<string, InvoiceModel[]>> {
  const [own] = subscriptions;
  const applications: CouponApplicationModel[] = [];
  for (const { association, coupon } of attached) {
    if (coupon.cadence === 'forever') continue;
    const filter = { column: 'coupon_association_id', value: association.id, where: { status: 'published' } };
    applications.push(...(await CouponApplicationModel.listBy(own, filter, database)));
  }
  const others = applications.filter((one) => one.invoice_id !== invoice_id);
  if (others.length === 0) return new Map();
  const invoices = await InvoiceModel.byId(
    own,
    others.map((one) => one.invoice_id),
    database,
  );
  const byAssociation = groupBy(others, (one) => one.coupon_association_id!);
  const begun = new Map(attached.map((one) => [one.association.id, listBegunPeriods(one, subscriptions)]));
  return new Map(
    Array.from(byAssociation, ([id, applied]) => {
      const ids = [...new Set(applied.map((one) => one.invoice_id))];
      return [
        id,
        usesAmong(
          ids.map((one) => invoices.get(one)!),
          begun.get(id)!,
        ),
      ];
    }),
  );
}

/** Lists the instants at which changes restarted the periods of the subscription. */
function listBegunPeriods(
  { association }: AttachedCoupon,
  subscriptions: CouponInvoiceContext['subscriptions'],
): ReadonlySet<Milliseconds> {
  const subscription = subscriptions.find(({ id }) => id === association.subscription_id);
  return new Set(subscription?.earlier_periods?.map(({ until }) => toInstant(until)));
}

/**
 * Returns the uses among invoices. A change invoice shares the coupon use of the running period and does not count as another use. If the
 * change restarted the period, the first invoice of the new period counts as a use.
 */
function usesAmong(invoices: readonly InvoiceModel[], begun: ReadonlySet<Milliseconds>): InvoiceModel[] {
  const openings = new Set<Milliseconds>();
  return invoices.filter(({ invoice_status, billing_reason, period_start }) => {
    if (invoice_status === 'VOIDED' || invoice_status === 'SKIPPED') return false;
    if (billing_reason !== 'SUBSCRIPTION_UPDATE') return true;
    const start = toInstant(period_start!);
    if (!begun.has(start) || openings.has(start)) return false;
    openings.add(start);
    return true;
  });
}

type UsedCoupon = { readonly coupon: CouponModel; readonly uses: readonly InvoiceModel[] };

function worksOn(
  { coupon, uses }: UsedCoupon,
  { inside, since = 0 }: { readonly inside: CouponInvoiceContext['inside']; readonly since?: number | undefined },
): boolean {
  if (inside === undefined) return isUsableAgain(coupon, uses.length + since);
  // An invoice of the usage so far gets percentages only: a fixed amount is taken off once per period, on the period's own invoice.
  if (inside === 'usage') return coupon.type === 'percentage' && isUsableAgain(coupon, uses.length);
  return coupon.cadence === 'forever' || uses.some((invoice) => charges(invoice, inside));
}

function isReturning(coupon: CouponModel, inside: CouponInvoiceContext['inside']): boolean {
  return coupon.type === 'fixed' && inside !== undefined;
}

const OF_A_PERIOD: readonly BillingReason[] = ['SUBSCRIPTION_CREATE', 'SUBSCRIPTION_TRIAL_END', 'SUBSCRIPTION_UPDATE'];

/** Whether the invoice contains the advance charges of this period: it opened the period or closed the one before. */
function charges({ billing_reason, period_start, period_end }: InvoiceModel, { start }: Period): boolean {
  if (OF_A_PERIOD.includes(billing_reason)) return Boolean(period_start) && toInstant(period_start!) === start;
  return billing_reason === 'SUBSCRIPTION_CYCLE' && Boolean(period_end) && toInstant(period_end!) === start;
}
