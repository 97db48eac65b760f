/** Requests and answers of cost sheets. */
import { z } from 'zod';
import { invalid } from '../../../core/foundation/error.ts';
import { optionalKey } from '../../../core/foundation/record.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { costsheetFields, costsheetShape } from '../../../core/invoicing/costs/record.ts';
import { PriceAnswer } from '../../catalog/prices/schema.ts';
import { BASE_COLUMNS, expand, type ListGrammar, listAnswer, listShape, matchAny } from '../../http/list.ts';

export const CreateCostsheet = costsheetFields.meta({
  id: 'CreateCostsheetRequest',
  example: { name: 'What models cost us', lookup_key: 'models' },
});

export const UpdateCostsheet = costsheetFields
  .pick({ name: true })
  .partial()
  .extend({
    lookup_key: optionalKey.optional().meta(costsheetFields.shape.lookup_key.meta()!),
    description: z.string().nullish().meta({ description: 'Description for people; null clears it.' }),
    metadata: costsheetFields.shape.metadata.unwrap().optional(),
  })
  .meta({ id: 'UpdateCostsheetRequest', example: { description: 'Per thousand tokens' } });

export const CostsheetExpand = z.object({ expand });

const common = listShape({ costsheet_ids: matchAny('cost sheets') });
const { limit, offset, cursor, status, order, start_time, end_time } = common.shape;
const TOO = 'The same as the top-level field of this name, where the published client sends it.';

/** Accepts the common keys, and the spelling of the published client. */
export const CostsheetFilter = common
  .extend({
    name: z.string().optional().meta({ description: 'Exact name.' }),
    lookup_key: z.string().optional().meta({ description: 'Exact lookup key.' }),
    queryFilter: z
      .object({
        limit: limit.unwrap().optional().meta({ description: TOO }),
        offset: offset.unwrap().optional().meta({ description: TOO }),
        cursor: cursor.meta({ description: TOO }),
        order: order.unwrap().optional().meta({ description: TOO }),
        status: status.meta({ description: TOO }),
        sort: z.string().optional().meta({ description: 'Column to sort by.' }),
        expand,
      })
      .nullish()
      .meta({ description: TOO }),
    timeRangeFilter: z.object({ start_time, end_time }).nullish().meta({ description: TOO }),
    costsheetIDs: matchAny('cost sheets'),
    lookupKey: z.string().optional().meta({ description: 'Alternative name of `lookup_key`.' }),
    tenantID: z.string().optional().meta({ description: 'Tenant of the key; any other is refused.' }),
    environmentID: z.string().optional().meta({ description: 'Environment of the key; any other is refused.' }),
  })
  .meta({ id: 'CostsheetFilter', example: { lookup_key: 'models', limit: 10 } });
export type CostsheetFilter = z.output<typeof CostsheetFilter>;

/** Converts the spelling of the published client into the common keys. */
export function normalizeCostsheetFilter(filter: CostsheetFilter, scope: Scope) {
  const { queryFilter, timeRangeFilter, costsheetIDs, lookupKey, tenantID, environmentID, ...fields } = filter;
  if (tenantID && tenantID !== scope.tenant_id) throw invalid('tenantID', 'is not the tenant of this key');
  if (environmentID && environmentID !== scope.environment_id)
    throw invalid('environmentID', 'is not the environment of this key');
  const nested = Object.entries({ ...queryFilter, ...timeRangeFilter }).filter(([, value]) => value !== undefined);
  return {
    ...fields,
    ...(Object.fromEntries(nested) as Partial<typeof fields>),
    // The top-level `sort` may list several columns, so it overrides the nested column.
    ...(fields.sort === undefined ? {} : { sort: fields.sort }),
    costsheet_ids: fields.costsheet_ids ?? costsheetIDs,
    lookup_key: fields.lookup_key ?? lookupKey,
  };
}

export const costsheetGrammar: ListGrammar = {
  columns: { ...BASE_COLUMNS, name: 'string', lookup_key: 'string', description: 'string' },
  expand: ['prices', 'meters'],
};

export const CostsheetAnswer = costsheetShape
  .extend({
    prices: z.array(PriceAnswer).nullable().meta({
      description:
        'Prices that have not ended, if `expand` names them; `GET /costs/active` always has them. Null otherwise.',
    }),
  })
  .meta({ id: 'CostsheetResponse' });
export const CostsheetListAnswer = listAnswer(CostsheetAnswer, 'ListCostsheetResponse');

const costsheet = CostsheetAnswer.meta({ description: 'The new cost sheet.' });
export const CreateCostsheetAnswer = z.object({ costsheet }).meta({ id: 'CreateCostsheetResponse' });
export const UpdateCostsheetAnswer = z.object({ costsheet }).meta({ id: 'UpdateCostsheetResponse' });
/** Contains the cost sheet twice: under `costsheet` for the published client, and flat like all other records. */
export const GetCostsheetAnswer = CostsheetAnswer.extend({ costsheet }).meta({ id: 'GetCostsheetResponse' });
export const DeleteCostsheetAnswer = z
  .object({
    message: z.string().meta({ description: 'Confirmation of the deletion.' }),
    id: z.string().meta({ description: 'Id of the cost sheet.' }),
  })
  .meta({ id: 'DeleteCostsheetResponse' });
