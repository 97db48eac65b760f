/** Prices: create, find, supersede, end. */
import { z } from 'zod';
import { changePrice } from '../../actions/catalogue/change-price.ts';
import { createPrice, createPrices } from '../../actions/catalogue/create-price.ts';
import { endPrice } from '../../actions/catalogue/end-price.ts';
import { narrow } from '../../storage/models/page.ts';
import { PriceModel } from '../../storage/models/price.ts';
import { fetchPage } from '../http/list.ts';
import { authorOf, type Context, idParams, MessageAnswer, type Route, route } from '../http/route.ts';
import { showPrice, showPrices } from './expand.ts';
import {
  BulkPriceAnswer,
  CreateBulkPriceRequest,
  CreatePriceRequest,
  changesOf,
  DeletePriceRequest,
  PriceAnswer,
  PriceFilter,
  PriceListAnswer,
  priceGrammar,
  UpdatePriceRequest,
} from './schema.ts';

const tag = 'Prices';

export const priceRoutes: Route[] = [
  route({
    method: 'post',
    path: '/prices',
    operation_id: 'createPrice',
    summary: 'Create a price of a plan or subscription',
    tag,
    access: 'price:write',
    body: CreatePriceRequest,
    success: 201,
    answer: PriceAnswer,
    handle: async ({ body }, context) => {
      const input = { request: body, author: authorOf(context) };
      return showPrice(await createPrice(context.services, context.scope, input), context);
    },
  }),
  route({
    method: 'post',
    path: '/prices/bulk',
    operation_id: 'createPricesBulk',
    summary: 'Create up to 100 prices, all or none',
    tag,
    access: 'price:write',
    body: CreateBulkPriceRequest,
    success: 201,
    answer: BulkPriceAnswer,
    handle: async ({ body }, context) => {
      const input = { requests: body.items, author: authorOf(context) };
      return { items: await showPrices(await createPrices(context.services, context.scope, input), [], context) };
    },
  }),
  route({
    method: 'get',
    path: '/prices',
    operation_id: 'listPrices',
    summary: 'List prices',
    tag,
    access: 'price:read',
    query: PriceFilter,
    success: 200,
    answer: PriceListAnswer,
    handle: ({ query }, context) => findPrices(query, context),
  }),
  route({
    method: 'post',
    path: '/prices/search',
    operation_id: 'queryPrice',
    summary: 'Search prices',
    tag,
    access: 'price:read',
    body: PriceFilter,
    success: 200,
    answer: PriceListAnswer,
    handle: ({ body }, context) => findPrices(body, context),
  }),
  route({
    method: 'get',
    path: '/prices/lookup/:lookup_key',
    operation_id: 'getPriceByLookupKey',
    summary: 'Get the price that has a lookup key now',
    tag,
    access: 'price:read',
    params: z.object({ lookup_key: z.string().min(1) }),
    success: 200,
    answer: PriceAnswer,
    handle: async ({ params }, context) => {
      const at = { now: context.now, database: context.services.postgres };
      return showPrice(await PriceModel.fetchByKey(context.scope, params.lookup_key, at), context);
    },
  }),
  route({
    method: 'get',
    path: '/prices/:id',
    operation_id: 'getPrice',
    summary: 'Get a price',
    tag,
    access: 'price:read',
    params: idParams,
    success: 200,
    answer: PriceAnswer,
    handle: async ({ params }, context) =>
      showPrice(await PriceModel.fetch(context.scope, params.id, { database: context.services.postgres }), context),
  }),
  route({
    method: 'put',
    path: '/prices/:id',
    operation_id: 'updatePrice',
    summary: 'Describe a price anew, or end it and start a successor',
    tag,
    access: 'price:write',
    params: idParams,
    body: UpdatePriceRequest,
    success: 200,
    answer: PriceAnswer,
    handle: async ({ params, body }, context) => {
      const price = await changePrice(context.services, context.scope, {
        id: params.id,
        changes: changesOf(body),
        effective_from: body.effective_from ?? undefined,
        author: authorOf(context),
      });
      return showPrice(price, context);
    },
  }),
  route({
    method: 'delete',
    path: '/prices/:id',
    operation_id: 'deletePrice',
    summary: 'End a price, now or at end_date',
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
        author: authorOf(context),
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
