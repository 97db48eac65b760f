import { z } from 'zod';
import { planFields, planShape } from '../../../core/catalog/plan/record.ts';
import { requiredKey } from '../../../core/foundation/record.ts';
import { type ListGrammar, listAnswer, listShape, matchAny } from '../../http/list.ts';
import { CreditGrantAnswer } from '../credit-grants/schema.ts';
import { EntitlementAnswer } from '../entitlements/schema.ts';
import { PriceAnswer } from '../prices/schema.ts';

export const CreatePlan = planFields
  .partial()
  .extend({ name: planFields.shape.name })
  .meta({ id: 'CreatePlanRequest', example: { name: 'Pro', lookup_key: 'pro', description: 'For teams' } });
export const UpdatePlan = planFields
  .partial()
  .meta({ id: 'UpdatePlanRequest', example: { description: 'For larger teams' } });

export const ClonePlan = planFields
  .partial()
  .extend({
    name: planFields.shape.name,
    lookup_key: requiredKey.meta({ description: 'Lookup key of the copy, unique among published plans.' }),
  })
  .meta({ id: 'ClonePlanRequest', example: { name: 'Pro 2027', lookup_key: 'pro_2027' } });

export const PlanFilter = listShape({
  plan_ids: matchAny('plans'),
  lookup_key: z.string().optional().meta({ description: 'Exact lookup key to match.' }),
}).meta({ id: 'PlanFilter', example: { lookup_key: 'pro', limit: 10 } });
export type PlanFilter = z.output<typeof PlanFilter>;

export const planGrammar: ListGrammar = {
  columns: {
    id: 'string',
    name: 'string',
    lookup_key: 'string',
    description: 'string',
    display_order: 'number',
    status: 'string',
    created_at: 'date',
    updated_at: 'date',
    created_by: 'string',
    updated_by: 'string',
  },
  expand: [
    'prices',
    'prices.meters',
    'prices.priceunit',
    'meters',
    'priceunit',
    'entitlements',
    'entitlements.features',
    'credit_grant',
  ],
  metadata: true,
};

export const PlanAnswer = planShape
  .extend({
    prices: z.array(PriceAnswer).nullable().meta({ description: 'Present if `expand` names prices; else null.' }),
    entitlements: z
      .array(EntitlementAnswer)
      .nullable()
      .meta({ description: 'Present if `expand` names entitlements; else null.' }),
    credit_grants: z
      .array(CreditGrantAnswer)
      .nullable()
      .meta({ description: 'Present if `expand` names credit_grant; else null.' }),
  })
  .meta({ id: 'PlanResponse' });

export const PlanListAnswer = listAnswer(PlanAnswer, 'ListPlansResponse');
