/** Usage groups of the invoice document, if its settings name groups (docs/rules/documents.md). */

import type { Scope } from '../../../core/foundation/scope.ts';
import type { DocumentGroup } from '../../../core/invoicing/document/document.ts';
import { parseGroupBy } from '../../../core/metering/analytics/group-by.ts';
import type { QueryBounds } from '../../../storage/concurrency/query-bounds.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { FeatureModel } from '../../../storage/models/catalog/feature.ts';
import type { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
import { breakDownLines, type LineBreakdown } from './break-down.ts';

type PrintedGroupsInput = {
  readonly lines: readonly InvoiceLineItemModel[];
  readonly group_by: readonly string[];
  readonly now: Date;
  readonly bounds?: QueryBounds | undefined;
};

/** Loads the groups below each usage line, by the id of the line. */
export async function loadPrintedGroups(
  stores: Stores,
  scope: Scope,
  { lines, group_by, now, bounds }: PrintedGroupsInput,
): Promise<Map<string, DocumentGroup[]>> {
  if (group_by.length === 0) return new Map();
  const broken = await breakDownLines(stores, scope, {
    lines,
    group_by: parseGroupBy(group_by),
    by_feature: group_by.includes('feature_id'),
    by_source: false,
    now,
    bounds,
  });
  const groups = [...broken.values()].flatMap(({ usage_breakdown }) => usage_breakdown ?? []);
  const featureIds = groups.flatMap(({ group }) => group.feature_id || []);
  const features = await FeatureModel.byId(scope, featureIds, stores.postgres);
  const named = (group: Readonly<Record<string, string>>) =>
    Object.entries(group)
      .map(([key, value]) => (key === 'feature_id' ? (features.get(value)?.name ?? value) : value) || '–')
      .join(' · ');
  const toGroups = ({ usage_breakdown }: LineBreakdown): DocumentGroup[] =>
    (usage_breakdown ?? []).map(({ group, usage, cost }) => ({
      label: named(group),
      usage: usage.toFixed(),
      cost: cost.toFixed(),
    }));
  return new Map(Array.from(broken, ([id, line]) => [id, toGroups(line)]));
}
