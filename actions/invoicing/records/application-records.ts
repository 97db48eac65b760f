/** Converts the discounts of a planned invoice to records that are stored and returned; those of a preview have no ids. */
import type { CouponApplication } from '../../../core/catalog/coupon/application.ts';
import type { Coupon } from '../../../core/catalog/coupon/record.ts';
import { type Author, createdBy } from '../../../core/foundation/stamp.ts';
import type { Invoice } from '../../../core/invoicing/invoice/record.ts';
import type { AppliedCoupon } from '../../../core/rating/discounts.ts';
import { newId } from '../../../storage/foundation/new-id.ts';

type ApplicationRecordsInput = {
  readonly invoice: Invoice;
  readonly line_ids: readonly string[];
  readonly author: Author;
};

/** Builds the records of the applied coupons. `line_ids` are the ids of the invoice lines, in the order of the plan. */
export function applicationRecords(
  applied: readonly AppliedCoupon[],
  { invoice, line_ids, author }: ApplicationRecordsInput,
): (CouponApplication & { position: number })[] {
  const { now } = author;
  return applied.map(({ by, line, original_price, discounted_amount }, position) => ({
    ...createdBy(author),
    id: invoice.id === '' ? '' : newId('coupon_application', now.getTime()),
    tenant_id: invoice.tenant_id,
    environment_id: invoice.environment_id,
    position,
    coupon_id: by.coupon.id,
    coupon_association_id: by.coupon_association_id,
    invoice_id: invoice.id,
    invoice_line_item_id: line === null ? null : line_ids[line]!,
    subscription_id: by.subscription_id,
    applied_at: now.toISOString(),
    original_price: original_price.toFixed(),
    final_price: original_price.minus(discounted_amount).toFixed(),
    discounted_amount: discounted_amount.toFixed(),
    discount_type: by.coupon.type,
    discount_percentage: by.coupon.percentage_off,
    currency: invoice.currency,
    coupon_snapshot: snapshot(by.coupon),
    metadata: null,
  }));
}

/** Fields that determine the discount. */
function snapshot({ id, name, coupon_code, type, amount_off, percentage_off, currency, ...coupon }: Coupon) {
  const { cadence, duration_in_periods } = coupon;
  return { id, name, coupon_code, type, amount_off, percentage_off, currency, cadence, duration_in_periods };
}
