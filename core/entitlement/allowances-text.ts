/** What a line keeps of what entitlements made free, and how that is understood again (docs/rules/invoices.md, "What a line was computed from"). */
import { z } from 'zod';
import { Decimal } from '../decimal.ts';
import { decimalText, timestampText } from '../record.ts';
import { formatMs, toInstant } from '../time/instant.ts';
import type { Period } from '../time/period.ts';
import type { MeasuredAllowance } from './allowance.ts';
import type { UsedIn } from './beside.ts';
import { GRANT_MEASURES } from './grant-record.ts';
import type { FreeWindows, Granting } from './grants.ts';

export function allowancesText(allowances: readonly MeasuredAllowance[]): Record<string, unknown>[] {
  return allowances.map(({ limit, windows, granting }) => ({
    limit: limit?.toFixed() ?? null,
    windows: windows.map(({ start, end, before, after, limit: own }) => ({
      ...(own ? { limit: own.toFixed() } : {}),
      start: formatMs(start),
      end: formatMs(end),
      before: before.toFixed(),
      after: after.toFixed(),
    })),
    ...(granting ? { grants: grantingText(granting) } : {}),
  }));
}

export function partsText(parts: readonly UsedIn[]): { start: string; end: string; used: string }[] {
  return parts.map(({ start, end, used }) => ({ start: formatMs(start), end: formatMs(end), used: used.toFixed() }));
}

function grantingText({ measure, groups, cycles, timezone }: Granting): Record<string, unknown> {
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

/** A limit with the stretches in which it holds; or grants, whose stretches are made of usage each time. */
export type Recorded = (Omit<FreeWindows, 'limit'> & { readonly limit: Decimal | null }) | Granting;

export function recordedAllowances(texts: readonly Record<string, unknown>[]): Recorded[] {
  return z
    .array(recorded)
    .parse(texts)
    .map(({ grants: granting, limit, windows }) => granting ?? { limit, windows: windows.map(withoutUndefined) });
}

function withoutUndefined({ start, end, limit }: Period & { limit?: Decimal | undefined }) {
  return { start, end, ...(limit ? { limit } : {}) };
}
