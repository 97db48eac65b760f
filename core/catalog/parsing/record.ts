/**
 * The result of parsing a description of prices (docs/rules/parsing.md): the bodies of the requests that would create it,
 * each under its own `ref`. A body refers to another one by its ref, because there is no id yet.
 */
import { z } from 'zod';
import { orDefault, orNull } from '../../foundation/record.ts';
import { createMeterShape } from '../../metering/meter/record.ts';
import { entitlementShape } from '../entitlement/record.ts';
import { featureShape } from '../feature/record.ts';
import { planFields } from '../plan/record.ts';
import { createPriceShape } from '../price/record.ts';

const ref = z
  .string()
  .min(1)
  .max(255)
  .meta({ description: 'Name by which other bodies of this answer refer to this one.' });
const under = <Body extends z.ZodType>(body: Body) =>
  z.object({
    ref,
    body: body.meta({
      description: 'Request body. Before you send the body, replace each `ref` in it by the id of the created record.',
    }),
  });

export const planBody = planFields.partial().extend({ name: planFields.shape.name });
export const featureBody = featureShape
  .pick({ name: true, type: true, unit_singular: true, unit_plural: true })
  .partial({ unit_singular: true, unit_plural: true })
  .extend({
    meter_id: orNull(z.string()).meta({
      description: 'The `ref` of the meter in the same answer, for a metered feature. Default: null.',
    }),
  });
const granted = entitlementShape.shape;
export const entitlementBody = z.object({
  entity_type: z.literal('PLAN').meta(granted.entity_type.meta()!),
  entity_id: z.string().min(1).meta({ description: 'The `ref` of the plan in the same answer.' }),
  feature_id: granted.feature_id.meta({ description: 'The `ref` of the feature in the same answer.' }),
  feature_type: granted.feature_type,
  usage_limit: orNull(granted.usage_limit.unwrap()).meta(granted.usage_limit.meta()!),
  usage_reset_period: orNull(granted.usage_reset_period.unwrap()).meta(granted.usage_reset_period.meta()!),
  is_soft_limit: orDefault(z.boolean(), false).meta(granted.is_soft_limit.meta()!),
});

const configurationShape = z.object({
  plans: z.array(under(planBody)).meta({ description: 'Bodies of `POST /plans`.' }),
  meters: z.array(under(createMeterShape)).meta({ description: 'Bodies of `POST /meters`.' }),
  features: z.array(under(featureBody)).meta({ description: 'Bodies of `POST /features`.' }),
  prices: z.array(under(createPriceShape)).meta({
    description: 'Bodies of `POST /prices`. `entity_id` is the ref of a plan, `meter_id` the ref of a meter.',
  }),
  entitlements: z.array(under(entitlementBody)).meta({ description: 'Bodies of `POST /entitlements`.' }),
});
export type Configuration = z.output<typeof configurationShape>;
/** Upper limit of the confidence: a description of prices contains prices, so most was missed if none was read. */
export const maxConfidence = ({ prices }: Pick<Configuration, 'prices'>) => (prices.length === 0 ? 0.3 : 1);

/** The input form, before defaults are filled. */
export type ConfigurationDraft = z.input<typeof configurationShape>;

export const notUnderstoodShape = z.object({
  text: z
    .string()
    .meta({ description: 'Words of the description that no body represents, or the ref of a rejected body.' }),
  reason: z.string().meta({ description: 'Reason why no body represents the words, or why the body was rejected.' }),
});
export type NotUnderstood = z.output<typeof notUnderstoodShape>;

export const parsedPricingShape = z.object({
  ...configurationShape.shape,
  confidence: z.number().min(0).max(1).meta({
    description:
      'Confidence. 1: every word was understood and nothing was assumed; 0: nothing was understood. At most 0.3 without a price.',
  }),
  not_understood: z
    .array(notUnderstoodShape)
    .meta({ description: 'Parts of the description that the bodies do not contain.' }),
  assumptions: z
    .array(z.string())
    .meta({ description: 'Contents of the bodies that the description does not contain.' }),
});
export type ParsedPricing = z.output<typeof parsedPricingShape>;

export const PARSE_METHODS = ['rules', 'llm'] as const;
export type ParseMethod = (typeof PARSE_METHODS)[number];
