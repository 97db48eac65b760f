/** Coupons: create, find, change, archive. */
import { defineCoupon } from '../../core/coupon/record.ts';
import { createdBy } from '../../core/stamp.ts';
import { CouponModel } from '../../storage/models/coupon.ts';
import { narrow } from '../../storage/models/page.ts';
import { newId } from '../../storage/new-id.ts';
import { fetchPage } from '../http/list.ts';
import { type Context, type Route, toAuthor, toChangeOptions } from '../http/route.ts';
import { standardRoutes } from '../http/standard-routes.ts';
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
      'A fixed coupon takes an amount of its currency off, a percentage coupon a share. What it takes off, for how long, and when it may be redeemed cannot be changed later.',
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
  coupons.read({ summary: 'Get a coupon', description: 'An archived coupon is answered, too.' }),
  coupons.readBy({
    summary: 'Get the published coupon with a code',
    description: 'The letters of the code may be in any case; an archived coupon has given its code back.',
    under: 'code',
    key: 'code',
    operation: 'Code',
    about: 'The `coupon_code`.',
    fetch: (scope, code, database) => CouponModel.fetchByCode(scope, code, database),
  }),
  coupons.change({
    summary: 'Update the name or the metadata of a coupon',
    description: 'What it takes off stays: those who redeemed it were promised that.',
    body: UpdateCoupon,
    handle: ({ params, body }, context) =>
      CouponModel.changePublished(context.scope, { id: params.id, changes: body }, toChangeOptions(context)),
  }),
  coupons.archive({
    summary: 'Archive a coupon',
    description: 'It cannot be redeemed any more, and its code is free for another. Who has redeemed it keeps it.',
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
