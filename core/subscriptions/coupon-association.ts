/** A coupon of a subscription, or of one of its lines or phases, in an interval (docs/rules/coupons.md, "Associations"). */
import { z } from 'zod';
import { alreadyExists, invalid } from '../foundation/error.ts';
import { baseFields, metadata, orNull, timestampText } from '../foundation/record.ts';
import { toInstant } from '../foundation/time/instant.ts';
import type { Subscription } from './record.ts';

export const couponAssociationShape = z.object({
  id: z.string(),
  coupon_id: z.string().meta({ description: 'Id of the redeemed coupon.' }),
  subscription_id: z.string().meta({ description: 'Id of the subscription.' }),
  subscription_line_item_id: orNull(z.string()).meta({
    description: 'Discounted line; null if the coupon discounts the invoice.',
  }),
  subscription_phase_id: orNull(z.string()).meta({
    description: 'Phase of the subscription to which the coupon belongs; null without one.',
  }),
  start_date: timestampText.meta({ description: 'Start of the interval in which the coupon applies.' }),
  end_date: orNull(timestampText).meta({ description: 'End of the interval, exclusive; null without an end.' }),
  metadata,
  ...baseFields,
});
export type CouponAssociation = z.output<typeof couponAssociationShape>;

type CouponTarget = Pick<CouponAssociation, 'coupon_id' | 'subscription_line_item_id' | 'start_date' | 'end_date'>;

/** Throws if the target already has the coupon at that time, because overlapping redemptions would discount it twice. */
export function checkRedeemedOnce(
  added: CouponTarget,
  associations: readonly (CouponTarget & { readonly id: string })[],
): void {
  const twice = associations.find(
    (one) =>
      one.coupon_id === added.coupon_id &&
      one.subscription_line_item_id === added.subscription_line_item_id &&
      isStartedBeforeEnd(one, added) &&
      isStartedBeforeEnd(added, one),
  );
  if (twice)
    throw alreadyExists(`coupon ${added.coupon_id} is there already, as ${twice.id}`, { field: 'coupon_code' });
}

/** Throws for an invoice coupon on a subscription that is invoiced with its parent: only line coupons apply on the invoice of a parent. */
export function checkDiscountable(
  { subscription_type }: Pick<Subscription, 'subscription_type'>,
  { field, line_id }: { readonly field: string; readonly line_id: string | null },
): void {
  if (subscription_type === 'grouped_invoicing' && line_id === null)
    throw invalid(field, 'takes nothing off a subscription that is invoiced with its parent: state one of its lines');
}

function isStartedBeforeEnd(one: CouponTarget, other: CouponTarget): boolean {
  return other.end_date === null || toInstant(one.start_date) < toInstant(other.end_date);
}
