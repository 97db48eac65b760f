/** Requests and answers of cost sheets. */
import { z } from 'zod';
import { costsheetFields, costsheetShape } from '../../core/costsheet/record.ts';
import { invalid } from '../../core/error.ts';
import { optionalKey } from '../../core/record.ts';
import type { Scope } from '../../core/scope.ts';
import { BASE_COLUMNS, expand, type ListGrammar, listAnswer, listShape, matchAny } from '../http/list.ts';
import { PriceAnswer } from '../prices/schema.ts';

export const CreateCostsheet = costsheetFields.meta({
  id: 'CreateCostsheetRequest',
  example: { name: 'What models cost us', lookup_key: 'models' },
});

export const UpdateCostsheet = costsheetFields
  .pick({ name: true })
  .partial()
  .extend({
    lookup_key: optionalKey.optional().meta(costsheetFields.shape.lookup_key.meta()!),
    description: z.string().nullish().meta({ description: 'For people; null clears it.' }),
    metadata: costsheetFields.shape.metadata.unwrap().optional(),
  })
  .meta({ id: 'UpdateCostsheetRequest', example: { description: 'Per thousand tokens' } });

export const CostsheetExpand = z.object({ expand });

const common = listShape({ costsheet_ids: matchAny('cost sheets') });
const { limit, offset, status, order, start_time, end_time } = common.shape;
const TOO = 'Another place for what stands beside it, which the published client uses.';

/** The published client writes these keys in its own way; both ways ask for the same. */
export const CostsheetFilter = common
  .extend({
    name: z.string().optional().meta({ description: 'Exactly this name.' }),
    lookup_key: z.string().optional().meta({ description: 'Exactly this key.' }),
    queryFilter: z
      .object({
        limit: limit.unwrap().optional().meta({ description: TOO }),
        offset: offset.unwrap().optional().meta({ description: TOO }),
        order: order.unwrap().optional().meta({ description: TOO }),
        status: status.meta({ description: TOO }),
        sort: z.string().optional().meta({ description: 'A column.' }),
        expand,
      })
      .nullish()
      .meta({ description: TOO }),
    timeRangeFilter: z.object({ start_time, end_time }).nullish().meta({ description: TOO }),
    costsheetIDs: matchAny('cost sheets'),
    lookupKey: z.string().optional().meta({ description: 'Another name of `lookup_key`.' }),
    tenantID: z.string().optional().meta({ description: 'The tenant of the key, and no other.' }),
    environmentID: z.string().optional().meta({ description: 'The environment of the key, and no other.' }),
  })
  .meta({ id: 'CostsheetFilter', example: { lookup_key: 'models', limit: 10 } });
export type CostsheetFilter = z.output<typeof CostsheetFilter>;

/** The question in one spelling. */
export function normalizeCostsheetFilter(filter: CostsheetFilter, scope: Scope) {
  const { queryFilter, timeRangeFilter, costsheetIDs, lookupKey, tenantID, environmentID, ...fields } = filter;
  if (tenantID && tenantID !== scope.tenant_id) throw invalid('tenantID', 'is not the tenant of this key');
  if (environmentID && environmentID !== scope.environment_id)
    throw invalid('environmentID', 'is not the environment of this key');
  const nested = Object.entries({ ...queryFilter, ...timeRangeFilter }).filter(([, value]) => value !== undefined);
  return {
    ...fields,
    ...(Object.fromEntries(nested) as Partial<typeof fields>),
    // A list of columns says more than one column.
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
    prices: z
      .array(PriceAnswer)
      .nullable()
      .meta({ description: 'Its prices that have not ended, where `expand` names them; of the active one always.' }),
  })
  .meta({ id: 'CostsheetResponse' });
export const CostsheetListAnswer = listAnswer(CostsheetAnswer, 'ListCostsheetResponse');

const costsheet = CostsheetAnswer.meta({ description: 'The cost sheet.' });
export const CreateCostsheetAnswer = z.object({ costsheet }).meta({ id: 'CreateCostsheetResponse' });
export const UpdateCostsheetAnswer = z.object({ costsheet }).meta({ id: 'UpdateCostsheetResponse' });
/** Wrapped, as the published client reads it, and flat, as all other records are. */
export const GetCostsheetAnswer = CostsheetAnswer.extend({ costsheet }).meta({ id: 'GetCostsheetResponse' });
export const DeleteCostsheetAnswer = z
  .object({
    message: z.string().meta({ description: 'What was done.' }),
    id: z.string().meta({ description: 'The id of the cost sheet.' }),
  })
  .meta({ id: 'DeleteCostsheetResponse' });
