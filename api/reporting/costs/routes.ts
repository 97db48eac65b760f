/** Cost sheets: create, search, read, update, delete. The routes of prices create their prices. */

import { createdBy } from '../../../core/foundation/stamp.ts';
import type { Costsheet } from '../../../core/invoicing/costs/record.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { CostsheetModel } from '../../../storage/models/reporting/costsheet.ts';
import { checkExpand, fetchPage } from '../../http/list.ts';
import { type Context, idParams, type Route, route, toAuthor, toChangeOptions } from '../../http/route.ts';
import { costAnalyticsRoutes } from './analytics.ts';
import { showCostsheet, showCostsheets } from './expand.ts';
import {
  CostsheetAnswer,
  CostsheetExpand,
  CostsheetFilter,
  CostsheetListAnswer,
  CreateCostsheet,
  CreateCostsheetAnswer,
  costsheetGrammar,
  DeleteCostsheetAnswer,
  GetCostsheetAnswer,
  normalizeCostsheetFilter,
  UpdateCostsheet,
  UpdateCostsheetAnswer,
} from './schema.ts';

const reads = { tag: 'Costs', access: 'costsheet:read', success: 200 } as const;
const writes = { tag: 'Costs', access: 'costsheet:write', success: 200 } as const;

export const costsheetRoutes: Route[] = [
  ...costAnalyticsRoutes,
  route({
    ...writes,
    method: 'post',
    path: '/costs',
    operation_id: 'createCostsheet',
    summary: 'Create a cost sheet',
    description:
      'Creates a cost sheet. Its prices are your own costs; add them by `POST /prices` with `entity_type` COSTSHEET. The newest cost sheet is the active one.',
    body: CreateCostsheet,
    success: 201,
    answer: CreateCostsheetAnswer,
    idempotency: {
      replay: async (done, _input, context) => {
        const { scope, services } = context;
        const sheet = await CostsheetModel.fetch(scope, done.made('cost_sheet'), { database: services.postgres });
        return { costsheet: await showCostsheet(sheet, [], context) };
      },
    },
    handle: async ({ body }, context) => {
      const record = { id: newId('costsheet', context.now.getTime()), ...body, ...createdBy(toAuthor(context)) };
      const conflict = describeKeyConflict(body);
      const sheet = await CostsheetModel.add(context.scope, record, { database: context.services.postgres, conflict });
      return { costsheet: await showCostsheet(sheet, [], context) };
    },
  }),
  route({
    ...reads,
    method: 'post',
    path: '/costs/search',
    operation_id: 'queryCostsheet',
    summary: 'Search cost sheets',
    description: 'Returns the cost sheets that meet all conditions, in pages. Default: published ones, newest first.',
    body: CostsheetFilter,
    answer: CostsheetListAnswer,
    handle: ({ body }, context) => findCostsheets(body, context),
  }),
  route({
    ...reads,
    method: 'get',
    path: '/costs/active',
    operation_id: 'getActiveCostsheet',
    summary: 'Get the active cost sheet',
    description: 'Returns the newest published cost sheet with its prices; 404 without one.',
    answer: CostsheetAnswer,
    handle: async (_input, context) => {
      const sheet = await CostsheetModel.fetchActive(context.scope, context.services.postgres);
      return showCostsheet(sheet, ['prices', 'meters'], context);
    },
  }),
  route({
    ...reads,
    method: 'get',
    path: '/costs/:id',
    operation_id: 'getCostsheet',
    summary: 'Get a cost sheet',
    description:
      'Returns the cost sheet under `costsheet`, and its fields again at the top level. A deleted one is returned too.',
    params: idParams,
    query: CostsheetExpand,
    answer: GetCostsheetAnswer,
    handle: async ({ params, query }, context) => {
      const { scope, services } = context;
      checkExpand(query.expand ?? [], costsheetGrammar);
      const sheet = await CostsheetModel.fetch(scope, params.id, { database: services.postgres });
      const costsheet = await showCostsheet(sheet, query.expand ?? [], context);
      return { ...costsheet, costsheet };
    },
  }),
  route({
    ...writes,
    method: 'put',
    path: '/costs/:id',
    operation_id: 'updateCostsheet',
    summary: 'Update a cost sheet',
    description: 'Changes the fields in the request. The prices of the cost sheet do not change.',
    params: idParams,
    body: UpdateCostsheet,
    answer: UpdateCostsheetAnswer,
    handle: async ({ params, body }, context) => {
      const by = { ...toChangeOptions(context), conflict: describeKeyConflict(body) };
      const sheet = await CostsheetModel.changePublished(context.scope, { id: params.id, changes: body }, by);
      return { costsheet: await showCostsheet(sheet, [], context) };
    },
  }),
  route({
    ...writes,
    method: 'delete',
    path: '/costs/:id',
    operation_id: 'deleteCostsheet',
    summary: 'Delete a cost sheet',
    description:
      'Deletes the cost sheet and releases its name and key. If it was active, the previous one becomes active again.',
    params: idParams,
    answer: DeleteCostsheetAnswer,
    handle: async ({ params }, context) => {
      await CostsheetModel.changePublished(
        context.scope,
        { id: params.id, changes: { status: 'deleted' } },
        toChangeOptions(context),
      );
      return { message: 'cost sheet deleted', id: params.id };
    },
  }),
];

const describeKeyConflict = (fields: Partial<Pick<Costsheet, 'name' | 'lookup_key'>>) => {
  const keys = (['name', 'lookup_key'] as const).flatMap((key) => (fields[key] ? `${key} ${fields[key]}` : []));
  return `a cost sheet with ${keys.join(' or ')} exists already`;
};

async function findCostsheets(filter: CostsheetFilter, context: Context) {
  const input = normalizeCostsheetFilter(filter, context.scope);
  const query = narrow(CostsheetModel.in(context.scope, context.services.postgres), [
    ['id', input.costsheet_ids],
    ['name', input.name],
    ['lookup_key', input.lookup_key],
  ]);
  const page = await fetchPage(query, input, costsheetGrammar);
  return { ...page, items: await showCostsheets(page.items, input.expand ?? [], context) };
}
