/** Coupons: create, find, change, archive. */
import { defineCoupon } from '../../../core/catalog/coupon/record.ts';
import { createdBy } from '../../../core/foundation/stamp.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import { CouponModel } from '../../../storage/models/catalog/coupon.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { fetchPage } from '../../http/list.ts';
import { type Context, type Route, toAuthor, toChangeOptions } from '../../http/route.ts';
import { standardRoutes } from '../../http/standard-routes.ts';
import { showCoupon } from './answer.ts';
import { couponAssociationRoutes } from './associations.ts';
import { CouponAnswer, CouponFilter, CouponListAnswer, CreateCoupon, couponGrammar, UpdateCoupon } from './schema.ts';

const tag = 'Coupons';

const coupons = standardRoutes({
  noun: 'coupon',
  tag,
  answer: CouponAnswer,
  model: CouponModel,
  show: showCoupon,
  list: { filter: CouponFilter, answer: CouponListAnswer, find: findCoupons },
});

export const couponRoutes: Route[] = [
  coupons.create({
    summary: 'Create a coupon',
    description:
      'Creates a coupon. A fixed coupon takes off an amount in its currency, a percentage coupon a share. The discount, its duration and the terms of redemption cannot be changed later. A code of another published coupon is refused.',
    body: CreateCoupon,
    handle: ({ body }, context) => {
      const coupon = defineCoupon(body);
      const id = newId('coupon', context.now.getTime());
      const record = { id, ...coupon, total_redemptions: 0, ...createdBy(toAuthor(context)) };
      const conflict = `a coupon with coupon_code ${coupon.coupon_code} exists already`;
      return CouponModel.add(context.scope, record, { database: context.services.postgres, conflict });
    },
  }),
  coupons.list,
  coupons.search,
  coupons.read({ summary: 'Get a coupon', description: 'Returns the coupon. An archived coupon is returned too.' }),
  coupons.readBy({
    summary: 'Get a coupon by code',
    description:
      'Returns the published coupon with this code, case-insensitive. Archived coupons are not found, because their code is released.',
    under: 'code',
    key: 'code',
    operation: 'Code',
    about: 'Code of the coupon (`coupon_code`).',
    fetch: (scope, code, database) => CouponModel.fetchByCode(scope, code, database),
  }),
  coupons.change({
    summary: 'Update a coupon',
    description:
      'Changes the name or the metadata. The discount cannot be changed, because customers have redeemed the coupon for it.',
    body: UpdateCoupon,
    handle: ({ params, body }, context) =>
      CouponModel.changePublished(context.scope, { id: params.id, changes: body }, toChangeOptions(context)),
  }),
  coupons.archive({
    summary: 'Archive a coupon',
    description: 'Ends redemption of the coupon and releases its code. Subscriptions that have redeemed it keep it.',
    handle: async ({ params }, context) => {
      await CouponModel.changePublished(
        context.scope,
        { id: params.id, changes: { status: 'archived' } },
        toChangeOptions(context),
      );
    },
  }),
  ...couponAssociationRoutes,
];

async function findCoupons(input: CouponFilter, context: Context) {
  const coupons = CouponModel.coded(context.scope, input.coupon_codes, context.services.postgres);
  const query = narrow(coupons, [['id', input.coupon_ids]]);
  const page = await fetchPage(query, input, couponGrammar);
  return { ...page, items: page.items.map((coupon) => showCoupon(coupon, context)) };
}
