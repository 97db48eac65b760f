/**
 * Checks that records named on manual invoice lines exist in the client's tenant and environment. A subscription must be one that this
 * customer pays for. Archived records are accepted, because a line describes the past.
 */

import { invalid } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { CreateInvoice, CreateInvoiceLine } from '../../../core/invoicing/invoice/record.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { AddonModel } from '../../../storage/models/catalog/addon.ts';
import { PlanModel } from '../../../storage/models/catalog/plan.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';
import { narrow, type PageQuery, type PageRecord } from '../../../storage/models/foundation/page.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';

type NamedReference = { readonly field: string; readonly id: string };

type InvoiceReferences = Pick<CreateInvoice, 'customer_id' | 'line_items'>;

export async function checkInvoiceReferences(
  scope: Scope,
  request: InvoiceReferences,
  database: Database,
): Promise<void> {
  const lines = request.line_items ?? [];
  const named = (toIds: (line: CreateInvoiceLine) => Partial<Record<string, string | null>>): NamedReference[] =>
    lines.flatMap((line, index) =>
      Object.entries(toIds(line)).flatMap(([name, id]) => (id ? [{ field: `line_items[${index}].${name}`, id }] : [])),
    );
  lines.forEach(checkEntity);
  const entity = (line: CreateInvoiceLine, type: EntityType) =>
    deriveEntityType(line) === type ? line.entity_id : null;

  const subscriptions = SubscriptionModel.in(scope, database).where((either) => {
    const { customer_id } = request;
    void either.where({ customer_id }).orWhere({ invoicing_customer_id: customer_id });
  });
  const items = SubscriptionLineItemModel.in(scope, database).whereIn(
    'subscription_id',
    subscriptions.clone().select('id'),
  );
  await check(
    PriceModel.in(scope, database),
    named((line) => ({ price_id: line.price_id })),
  );
  await check(
    MeterModel.in(scope, database),
    named((line) => ({ meter_id: line.meter_id })),
  );
  await check(
    PlanModel.in(scope, database),
    named((line) => ({ plan_id: line.plan_id, entity_id: entity(line, 'plan') })),
  );
  await check(
    AddonModel.in(scope, database),
    named((line) => ({ entity_id: entity(line, 'addon') })),
  );
  await check(
    subscriptions,
    named((line) => ({ subscription_id: line.subscription_id, entity_id: entity(line, 'subscription') })),
  );
  await check(
    items,
    named((line) => ({ subscription_line_item_id: line.subscription_line_item_id })),
  );
}

/** Entity types that can be checked. The prices of lines have only these types. */
const ENTITY_TYPES = ['plan', 'subscription', 'addon'] as const;
type EntityType = (typeof ENTITY_TYPES)[number];

/** A plan_id implies the entity type. */
function deriveEntityType({ entity_type, plan_id }: CreateInvoiceLine): EntityType | null | undefined {
  if (!entity_type) return plan_id ? 'plan' : null;
  return ENTITY_TYPES.find((type) => type === entity_type.toLowerCase());
}

function checkEntity(line: CreateInvoiceLine, index: number): void {
  const field = `line_items[${index}].entity_type`;
  const type = deriveEntityType(line);
  if (type === undefined) throw invalid(field, `must be one of ${ENTITY_TYPES.join(', ')}`, { allowed: ENTITY_TYPES });
  if (line.entity_id && type === null)
    throw invalid(field, `is required with entity_id: one of ${ENTITY_TYPES.join(', ')}`, { allowed: ENTITY_TYPES });
  // The line is stored with the plan as its entity.
  if (line.plan_id && !line.entity_id && type !== 'plan') throw invalid(field, 'must be plan, which plan_id names');
}

/** Checks in one query that the records named by all lines exist. */
async function check<M extends PageRecord & { id: string }>(
  records: PageQuery<M>,
  named: readonly NamedReference[],
): Promise<void> {
  if (named.length === 0) return;
  const found: readonly { id: string }[] = await narrow(records, [['id', [...new Set(named.map(({ id }) => id))]]]);
  const known = new Set(found.map(({ id }) => id));
  const missing = named.find(({ id }) => !known.has(id));
  if (missing) throw invalid(missing.field, `${missing.id} does not exist for this customer and environment`);
}
