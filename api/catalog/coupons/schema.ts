/** Requests and answers of coupons. */
import { z } from 'zod';
import { couponFields, couponShape } from '../../../core/catalog/coupon/record.ts';
import { timestampText } from '../../../core/foundation/record.ts';
import { couponAssociationShape } from '../../../core/subscriptions/coupon-association.ts';
import { BASE_COLUMNS, flag, type ListGrammar, listAnswer, listShape, matchAny, textList } from '../../http/list.ts';

export const CreateCoupon = couponFields.meta({
  id: 'CreateCouponRequest',
  example: {
    name: 'Launch',
    coupon_code: 'LAUNCH20',
    type: 'percentage',
    percentage_off: '20',
    cadence: 'repeated',
    duration_in_periods: 3,
    max_redemptions: 100,
  },
});

export const UpdateCoupon = couponFields
  .pick({ name: true })
  .partial()
  .extend({ metadata: couponFields.shape.metadata.unwrap().optional() })
  .meta({ id: 'UpdateCouponRequest', example: { name: 'Launch of the API' } });

export const CouponFilter = listShape({
  coupon_ids: matchAny('coupons'),
  coupon_codes: matchAny('codes'),
}).meta({ id: 'CouponFilter', example: { coupon_codes: ['LAUNCH20'], limit: 10 } });
export type CouponFilter = z.output<typeof CouponFilter>;

export const couponGrammar: ListGrammar = {
  columns: {
    ...BASE_COLUMNS,
    name: 'string',
    coupon_code: 'string',
    type: 'string',
    amount_off: 'number',
    percentage_off: 'number',
    currency: 'string',
    cadence: 'string',
    duration_in_periods: 'number',
    redeem_after: 'date',
    redeem_before: 'date',
    max_redemptions: 'number',
    total_redemptions: 'number',
  },
  metadata: true,
};

export const CouponAnswer = couponShape
  .extend({
    valid: z.boolean().meta({
      description:
        'True if the coupon can be redeemed now: published, within its redemption time, and below its maximum number of redemptions.',
    }),
  })
  .meta({ id: 'CouponResponse' });
export const CouponListAnswer = listAnswer(CouponAnswer, 'ListCouponsResponse');

const IDS_MAX = 100;
const atMost = (these: string) =>
  textList
    .pipe(z.array(z.string()).max(IDS_MAX))
    .optional()
    .meta({
      description: `Matches any of these ${these}, at most ${IDS_MAX}.`,
    });

export const CouponAssociationFilter = listShape({
  subscription_ids: atMost('subscriptions'),
  coupon_ids: atMost('coupons'),
  subscription_line_item_ids: matchAny('line items'),
  subscription_phase_ids: matchAny('phases'),
  active_only: flag.default(false).meta({
    description:
      'True for associations that apply at some time in the period or, if no period is given, now. Default: false.',
  }),
  period_start: timestampText.optional().meta({ description: 'Start of the period. It requires `active_only`.' }),
  period_end: timestampText.optional().meta({ description: 'Exclusive end of the period. It requires `active_only`.' }),
}).meta({ id: 'CouponAssociationFilter' });
export type CouponAssociationFilter = z.output<typeof CouponAssociationFilter>;

export const couponAssociationGrammar: ListGrammar = {
  columns: {
    ...BASE_COLUMNS,
    coupon_id: 'string',
    subscription_id: 'string',
    subscription_line_item_id: 'string',
    subscription_phase_id: 'string',
    start_date: 'date',
    end_date: 'date',
  },
  expand: ['coupon'],
};

export const CouponAssociationAnswer = couponAssociationShape
  .extend({
    coupon: CouponAnswer.nullable().meta({
      description: 'Coupon of a single association; in a list only if `expand` names it. Null otherwise.',
    }),
  })
  .meta({ id: 'CouponAssociationResponse' });
export const CouponAssociationListAnswer = listAnswer(CouponAssociationAnswer, 'ListCouponAssociationsResponse');
