/** Which subscription, or which line or phase of it, has a coupon, and from when to when (docs/rules/coupons.md, "Associations"). */
import { z } from 'zod';
import { alreadyExists, invalid } from '../error.ts';
import { baseFields, metadata, orNull, timestampText } from '../record.ts';
import type { Subscription } from '../subscription/record.ts';
import { toInstant } from '../time/instant.ts';

export const couponAssociationShape = z.object({
  id: z.string(),
  coupon_id: z.string().meta({ description: 'The coupon that was redeemed.' }),
  subscription_id: z.string().meta({ description: 'For which subscription.' }),
  subscription_line_item_id: orNull(z.string()).meta({
    description: 'The line that it takes from; null where it takes from the invoice.',
  }),
  subscription_phase_id: orNull(z.string()).meta({ description: 'The phase of the subscription that it belongs to.' }),
  start_date: timestampText.meta({ description: 'From when on it works.' }),
  end_date: orNull(timestampText).meta({ description: 'Until when, exclusive; open when null.' }),
  metadata,
  ...baseFields,
});
export type CouponAssociation = z.output<typeof couponAssociationShape>;

type CouponTarget = Pick<CouponAssociation, 'coupon_id' | 'subscription_line_item_id' | 'start_date' | 'end_date'>;

/** What has a coupon has it once at a time: twice at once it would take off twice. */
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

/** On the invoice of a parent only coupons of lines work: one of the whole would be redeemed for nothing. */
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
