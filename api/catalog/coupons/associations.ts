/** Associations of coupons with subscriptions. They are only read here; modifications of the subscription create and end them. */
import { invalid } from '../../../core/foundation/error.ts';
import { toInstant } from '../../../core/foundation/time/instant.ts';
import { type Condition, narrow } from '../../../storage/models/foundation/page.ts';
import { CouponAssociationModel } from '../../../storage/models/subscriptions/coupon-association.ts';
import { fetchPage } from '../../http/list.ts';
import { type Context, idParams, type Route, route } from '../../http/route.ts';
import { showCouponAssociations } from './answer.ts';
import {
  CouponAssociationAnswer,
  CouponAssociationFilter,
  CouponAssociationListAnswer,
  couponAssociationGrammar,
} from './schema.ts';

const reads = { method: 'get', tag: 'Coupons', access: 'coupon:read', success: 200 } as const;

export const couponAssociationRoutes: Route[] = [
  route({
    ...reads,
    path: '/coupons/associations',
    operation_id: 'listCouponAssociations',
    summary: 'List coupon associations',
    description:
      'Returns the coupons of subscriptions that meet all conditions, in pages. Default order: newest first.',
    query: CouponAssociationFilter,
    answer: CouponAssociationListAnswer,
    handle: ({ query }, context) => findAssociations(query, context),
  }),
  route({
    ...reads,
    path: '/coupons/associations/:id',
    operation_id: 'getCouponAssociation',
    summary: 'Get a coupon association',
    description: 'Returns one coupon of a subscription, with the coupon itself. An ended association is returned too.',
    params: idParams,
    answer: CouponAssociationAnswer,
    handle: async ({ params }, context) => {
      const { scope, services } = context;
      const association = await CouponAssociationModel.fetch(scope, params.id, { database: services.postgres });
      const [shown] = await showCouponAssociations([association], ['coupon'], context);
      return shown;
    },
  }),
];

async function findAssociations(input: CouponAssociationFilter, context: Context) {
  const query = narrow(CouponAssociationModel.in(context.scope, context.services.postgres), [
    ['subscription_id', input.subscription_ids],
    ['coupon_id', input.coupon_ids],
    ['subscription_line_item_id', input.subscription_line_item_ids],
    ['subscription_phase_id', input.subscription_phase_ids],
    ...activeIn(input, context.now),
  ]);
  const page = await fetchPage(query, input, couponAssociationGrammar);
  return { ...page, items: await showCouponAssociations(page.items, input.expand ?? [], context) };
}

/** Builds conditions for associations that apply at some time in [period_start, period_end), or now. */
function activeIn(input: CouponAssociationFilter, now: Date): Condition[] {
  const { active_only, period_start, period_end } = input;
  if (!active_only) {
    if (period_start ?? period_end) throw invalid('active_only', 'must be true where a period is stated');
    return [];
  }
  if (!period_start && !period_end)
    return [
      ['start_date', '<=', now],
      ['end_date', 'open at', now],
    ];
  if (period_start && period_end && toInstant(period_end) < toInstant(period_start))
    throw invalid('period_end', 'must not lie before period_start');
  return [
    ['start_date', '<', period_end],
    ['end_date', 'open at', period_start],
  ];
}
