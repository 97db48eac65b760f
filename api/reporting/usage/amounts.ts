/**
 * Restricts amounts of usage on every route: they need the permission to read invoices (docs/permissions.md, "Amounts"). Other callers get
 * the usage, and null for each amount.
 */
import { canRead } from '../../../core/foundation/access/role.ts';
import { mapYielding } from '../../../storage/concurrency/time-slicer.ts';
import type { Context } from '../../http/route.ts';

const AMOUNTS = [
  'subtotal',
  'total_discount',
  'total_cost',
  'discount',
  'cost',
  'computed_commitment_utilized_amount',
  'computed_overage_amount',
  'computed_true_up_amount',
  'commitment_info',
  'buckets',
  'bucket_summaries',
] as const;

type AnalyticsItemAmounts = { readonly points: readonly object[] | null };
type AnalyticsAmounts = { readonly totals: readonly object[]; readonly items: readonly AnalyticsItemAmounts[] };

export async function hideAmounts<Answer extends AnalyticsAmounts>(
  { principal, scope }: Pick<Context, 'principal' | 'scope'>,
  answer: Answer,
) {
  if (canRead(principal, 'invoice')) return answer;
  const items: AnalyticsItemAmounts[] = [];
  for (const { points, ...item } of answer.items) {
    const shown = points && (await mapYielding(scope.tenant_id, points, withoutAmounts));
    items.push({ ...withoutAmounts(item), points: shown });
  }
  return { ...withoutAmounts(answer), totals: [], items };
}

function withoutAmounts<Shown extends object>(shown: Shown): Shown {
  const hidden = AMOUNTS.filter((field) => field in shown).map((field) => [field, null]);
  return { ...shown, ...Object.fromEntries(hidden) };
}
