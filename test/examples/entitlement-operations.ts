/** The operations of the entitlement.* areas on core/catalog/entitlement/. */
import { z } from 'zod';
import { combineGrants } from '../../core/catalog/entitlement/combine.ts';
import { USAGE_RESET_PERIODS } from '../../core/catalog/entitlement/record.ts';
import { FEATURE_TYPES } from '../../core/catalog/feature/record.ts';
import { FarthingError } from '../../core/foundation/error.ts';
import { formatMs } from '../../core/foundation/time/instant.ts';
import { computeResetWindow } from '../../core/rating/allowances/reset.ts';
import type { Result } from './compare.ts';
import { instant } from './time-operations.ts';

const aggregateShape = z.object({
  feature_type: z.enum(FEATURE_TYPES),
  entitlements: z.array(
    z.object({
      is_enabled: z.boolean(),
      usage_limit: z
        .number()
        .nullish()
        .transform((limit) => (limit === null || limit === undefined ? null : String(limit))),
      is_soft_limit: z.boolean().default(false),
      static_value: z.string().nullable().default(null),
      config_value: z.record(z.string(), z.unknown()).nullable().default(null),
      quantity: z.number().default(1),
    }),
  ),
});

export function aggregateEntitlements(given: Result): Result {
  const { feature_type, entitlements } = aggregateShape.parse(given);
  return combineGrants(feature_type, entitlements);
}

const resetShape = z.object({
  usage_reset_period: z.enum(USAGE_RESET_PERIODS),
  now: instant,
  subscription_start: instant,
  billing_anchor: instant,
  subscription_end: instant.nullish(),
  timezone: z.string().default('UTC'),
});

export function nextReset(given: Result): Result {
  const { now, subscription_start, subscription_end, billing_anchor, ...rule } = resetShape.parse(given);
  const life = { start_ms: subscription_start, end_ms: subscription_end ?? null, billing_anchor_ms: billing_anchor };
  try {
    const { end } = computeResetWindow(now, { ...rule, ...life });
    return { next_reset: end === null ? 'never' : formatMs(end) };
  } catch (error) {
    if (error instanceof FarthingError) return { next_reset: 'error' };
    throw error;
  }
}
