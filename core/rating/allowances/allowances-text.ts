/**
 * Formats and parses the allowances that an invoice line stores (docs/rules/invoices.md, "What a line was computed
 * from").
 */
import { z } from 'zod';
import { GRANT_MEASURES } from '../../catalog/entitlement/grant-record.ts';
import { Decimal } from '../../foundation/decimal.ts';
import { decimalText, timestampText } from '../../foundation/record.ts';
import { formatMs, toInstant } from '../../foundation/time/instant.ts';
import type { Period } from '../../foundation/time/period.ts';
import type { MeasuredAllowance } from './allowance.ts';
import type { FreeWindows, Granting } from './grants.ts';
import type { UsageInterval } from './independent-limits.ts';

export function formatAllowances(allowances: readonly MeasuredAllowance[]): Record<string, unknown>[] {
  return allowances.map(({ limit, windows, granting }) => ({
    limit: limit?.toFixed() ?? null,
    windows: windows.map(({ start, end, before, after, limit: own }) => ({
      ...(own ? { limit: own.toFixed() } : {}),
      start: formatMs(start),
      end: formatMs(end),
      before: before.toFixed(),
      after: after.toFixed(),
    })),
    ...(granting ? { grants: formatGranting(granting) } : {}),
  }));
}

export function formatAllowanceParts(parts: readonly UsageInterval[]): { start: string; end: string; used: string }[] {
  return parts.map(({ start, end, used }) => ({ start: formatMs(start), end: formatMs(end), used: used.toFixed() }));
}

function formatGranting({ measure, groups, cycles, timezone }: Granting): Record<string, unknown> {
  return {
    measure,
    groups: groups.map((group) => group.map(({ quota, duration }) => ({ quota: quota.toFixed(), ...duration }))),
    cycles: cycles.map(({ start, end }) => ({ start: formatMs(start), end: formatMs(end) })),
    timezone,
  };
}

const decimal = decimalText.transform((text) => new Decimal(text));
const instant = timestampText.transform(toInstant);
const period = z.object({ start: instant, end: instant });
const duration = z.union([
  z.object({ unit: z.literal('subscription_period') }),
  z.object({
    unit: z.enum(['hour', 'day', 'week']),
    value: z.int(),
    allocation: z.enum(['first_usage', 'unit_start']),
  }),
]);
const grants = z
  .object({ quota: decimal })
  .and(duration)
  .transform(({ quota, ...rest }) => ({ quota, duration: rest }));
const recorded = z.object({
  limit: decimal.nullable(),
  windows: z.array(period.extend({ limit: decimal.optional() })),
  grants: z
    .object({
      measure: z.enum(GRANT_MEASURES),
      groups: z.array(z.array(grants)),
      cycles: z.array(period),
      timezone: z.string(),
    })
    .optional(),
});

/** A limit with the intervals in which it applies, or grants, whose intervals are recomputed from usage. */
type RecordedAllowance = (Omit<FreeWindows, 'limit'> & { readonly limit: Decimal | null }) | Granting;

export function parseAllowances(texts: readonly Record<string, unknown>[]): RecordedAllowance[] {
  return z
    .array(recorded)
    .parse(texts)
    .map(({ grants: granting, limit, windows }) => granting ?? { limit, windows: windows.map(omitUndefinedLimit) });
}

function omitUndefinedLimit({ start, end, limit }: Period & { limit?: Decimal | undefined }) {
  return { start, end, ...(limit ? { limit } : {}) };
}
