/**
 * What a description of prices becomes (docs/rules/parsing.md): the bodies of the requests that would make it, each under a
 * `ref` of its own. Where a body names another one it has that one's ref in the place of the id that there is not yet.
 */
import { z } from 'zod';
import { entitlementShape } from '../entitlement/record.ts';
import { featureShape } from '../feature/record.ts';
import { createMeterShape } from '../meter/record.ts';
import { planFields } from '../plan/record.ts';
import { createPriceShape } from '../price/record.ts';
import { orDefault, orNull } from '../record.ts';

const ref = z.string().min(1).max(255).meta({ description: 'What other bodies of this answer call it by.' });
const under = <Body extends z.ZodType>(body: Body) =>
  z.object({ ref, body: body.meta({ description: 'What to send, once refs are ids.' }) });

export const planBody = planFields.partial().extend({ name: planFields.shape.name });
export const featureBody = featureShape
  .pick({ name: true, type: true, unit_singular: true, unit_plural: true })
  .partial({ unit_singular: true, unit_plural: true })
  .extend({ meter_id: orNull(z.string()).meta({ description: 'The ref of the meter of a metered feature.' }) });
const granted = entitlementShape.shape;
export const entitlementBody = z.object({
  entity_type: z.literal('PLAN').meta(granted.entity_type.meta()!),
  entity_id: z.string().min(1).meta({ description: 'The ref of the plan.' }),
  feature_id: granted.feature_id.meta({ description: 'The ref of the feature.' }),
  feature_type: granted.feature_type,
  usage_limit: orNull(granted.usage_limit.unwrap()).meta(granted.usage_limit.meta()!),
  usage_reset_period: orNull(granted.usage_reset_period.unwrap()).meta(granted.usage_reset_period.meta()!),
  is_soft_limit: orDefault(z.boolean(), false).meta(granted.is_soft_limit.meta()!),
});

export const configurationShape = z.object({
  plans: z.array(under(planBody)).meta({ description: 'Bodies of `POST /plans`.' }),
  meters: z.array(under(createMeterShape)).meta({ description: 'Bodies of `POST /meters`.' }),
  features: z.array(under(featureBody)).meta({ description: 'Bodies of `POST /features`.' }),
  prices: z.array(under(createPriceShape)).meta({
    description: 'Bodies of `POST /prices`, whose `entity_id` is the ref of a plan and `meter_id` that of a meter.',
  }),
  entitlements: z.array(under(entitlementBody)).meta({ description: 'Bodies of `POST /entitlements`.' }),
});
export type Configuration = z.output<typeof configurationShape>;
/** How sure one can be: whoever describes prices has prices, and where none was read most was missed. */
export const maxConfidence = ({ prices }: Pick<Configuration, 'prices'>) => (prices.length === 0 ? 0.3 : 1);

/** As it is written down, before defaults are filled. */
export type ConfigurationDraft = z.input<typeof configurationShape>;

export const notUnderstoodShape = z.object({
  text: z.string().meta({ description: 'The words, as they were read.' }),
  reason: z.string().meta({ description: 'Why nothing was made of them.' }),
});
export type NotUnderstood = z.output<typeof notUnderstoodShape>;

export const parsedPricingShape = z.object({
  ...configurationShape.shape,
  confidence: z.number().min(0).max(1).meta({
    description: '1: every word was understood and nothing was assumed; 0: nothing was understood.',
  }),
  not_understood: z.array(notUnderstoodShape).meta({ description: 'What was said and is not in the bodies.' }),
  assumptions: z.array(z.string()).meta({ description: 'What the bodies say and the description did not.' }),
});
export type ParsedPricing = z.output<typeof parsedPricingShape>;

/** By which way a description was read. */
export const PARSE_METHODS = ['rules', 'llm'] as const;
export type ParseMethod = (typeof PARSE_METHODS)[number];
