/** Prices: create, find, replace, end. */
import { z } from 'zod';
import { changePrice } from '../../../actions/catalog/prices/change-price.ts';
import { createPrice, createPrices } from '../../../actions/catalog/prices/create-price.ts';
import { endPrice } from '../../../actions/catalog/prices/end-price.ts';
import { computePriceCosts } from '../../../actions/catalog/prices/price-cost.ts';
import { CreatePriceRequest } from '../../../core/catalog/price/request.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { fetchPage } from '../../http/list.ts';
import { type Context, idParams, MessageAnswer, type Route, route, toAuthor } from '../../http/route.ts';
import { standardRoutes } from '../../http/standard-routes.ts';
import { showPrice, showPriceCosts, showPrices } from './expand.ts';
import {
  BulkPriceAnswer,
  CreateBulkPriceRequest,
  DeletePriceRequest,
  PriceAnswer,
  PriceCostAnswer,
  PriceCostRequest,
  PriceFilter,
  PriceListAnswer,
  priceGrammar,
  toCostedPrice,
  toPriceChanges,
  UpdatePriceRequest,
} from './schema.ts';

const tag = 'Prices';

const prices = standardRoutes({
  noun: 'price',
  tag,
  answer: PriceAnswer,
  model: PriceModel,
  show: showPrice,
  list: { filter: PriceFilter, answer: PriceListAnswer, find: findPrices },
});

export const priceRoutes: Route[] = [
  prices.create({
    summary: 'Create a price',
    description:
      'Creates a price of a plan, add-on, subscription or cost sheet. Default `start_date`: now. Running ' +
      'subscriptions to the plan do not receive it.',
    body: CreatePriceRequest,
    handle: ({ body }, context) =>
      createPrice(context.services, context.scope, { request: body, author: toAuthor(context) }),
  }),
  route({
    method: 'post',
    path: '/prices/bulk',
    operation_id: 'createPricesBulk',
    summary: 'Create several prices',
    description:
      'Creates up to 100 prices, all or none. One invalid price refuses the request; the error names its index.',
    tag,
    access: 'price:write',
    body: CreateBulkPriceRequest,
    success: 201,
    answer: BulkPriceAnswer,
    idempotency: {
      replay: async (done, _input, context) => {
        const { scope, services } = context;
        const ids = done.madeAll('price');
        const prices = await PriceModel.byId(scope, ids, services.postgres);
        return {
          items: await showPrices(
            ids.flatMap((id) => prices.get(id) ?? []),
            [],
            context,
          ),
        };
      },
    },
    handle: async ({ body }, context) => {
      const input = { requests: body.items, author: toAuthor(context) };
      return { items: await showPrices(await createPrices(context.services, context.scope, input), [], context) };
    },
  }),
  route({
    method: 'post',
    path: '/prices/cost',
    operation_id: 'getPriceCost',
    summary: 'Compute the cost of quantities',
    description:
      'Prices quantities as an invoice line does, without a subscription, under a stored price (`price_id`) or the ' +
      'fields of one that is not written (`price`). Nothing is written. If the meter has a `bucket_size`, a quantity ' +
      'is that of one window. Entitlements, commitments of subscriptions, coupons and taxes are not applied.',
    tag,
    access: 'price:read',
    body: PriceCostRequest,
    success: 200,
    answer: PriceCostAnswer,
    handle: async ({ body }, context) => {
      const input = { priced: toCostedPrice(body), quantities: body.quantities, at: body.at ?? null };
      return showPriceCosts(
        await computePriceCosts(context.services, context.scope, { ...input, author: toAuthor(context) }),
      );
    },
  }),
  prices.list,
  prices.search,
  route({
    method: 'get',
    path: '/prices/lookup/:lookup_key',
    operation_id: 'getPriceByLookupKey',
    summary: 'Get a price by lookup key',
    description: 'Returns the current price with this key; else the next one to begin; else the last one that ended.',
    tag,
    access: 'price:read',
    params: z.object({ lookup_key: z.string().min(1).meta({ description: 'Lookup key of the price.' }) }),
    success: 200,
    answer: PriceAnswer,
    handle: async ({ params }, context) => {
      const at = { now: context.now, database: context.services.postgres };
      return showPrice(await PriceModel.fetchByKey(context.scope, params.lookup_key, at), context);
    },
  }),
  prices.read({ summary: 'Get a price', description: 'Returns the price, even if it has ended.' }),
  prices.change({
    summary: 'Update or replace a price',
    description:
      'Changes name, description, metadata and lookup key in place. A change of the charge ends the price at ' +
      '`effective_from` (default now) and starts a successor, which is returned. Running subscriptions retain ' +
      'their price.',
    body: UpdatePriceRequest,
    handle: ({ params, body }, context) =>
      changePrice(context.services, context.scope, {
        id: params.id,
        changes: toPriceChanges(body),
        effective_from: body.effective_from ?? undefined,
        author: toAuthor(context),
      }),
  }),
  route({
    method: 'delete',
    path: '/prices/:id',
    operation_id: 'deletePrice',
    summary: 'End a price',
    description:
      'Ends the price now, or at `end_date`. The price stays readable for past charges, and running subscriptions retain it.',
    tag,
    access: 'price:write',
    params: idParams,
    body: DeletePriceRequest,
    success: 200,
    answer: MessageAnswer,
    handle: async ({ params, body }, context) => {
      await endPrice(context.services, context.scope, {
        id: params.id,
        end_date: body?.end_date ?? undefined,
        author: toAuthor(context),
      });
      return { message: 'price ended' };
    },
  }),
];

async function findPrices(input: PriceFilter, context: Context) {
  const { scope, services, now } = context;
  const query = narrow(PriceModel.in(scope, services.postgres), [
    ['end_date', 'open at', input.allow_expired_prices ? undefined : now],
    ['id', input.price_ids],
    ['billing_period', input.billing_periods],
    ['entity_type', input.plan_ids?.length ? 'PLAN' : undefined],
    ['entity_id', input.plan_ids],
    ['entity_type', input.entity_type],
    ['entity_id', input.entity_ids],
    ['entity_type', input.subscription_id ? 'SUBSCRIPTION' : undefined],
    ['entity_id', input.subscription_id],
    ['parent_price_id', input.parent_price_id],
    ['meter_id', input.meter_ids],
    ['start_date', '<', input.start_date_lt],
  ]);
  const page = await fetchPage(query, input, priceGrammar);
  return { ...page, items: await showPrices(page.items, input.expand ?? [], context) };
}
