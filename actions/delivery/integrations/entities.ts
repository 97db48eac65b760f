/** Checks that a record exists before it is linked to a record at a provider. */
import { invalid } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { MappedEntityType } from '../../../core/platform/integration/mapping.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { AddonModel } from '../../../storage/models/catalog/addon.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { PlanModel } from '../../../storage/models/catalog/plan.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';
import { CreditNoteModel } from '../../../storage/models/invoicing/credit-note.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
import { PaymentModel } from '../../../storage/models/payments/payment.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import type { MappedEntity } from '../../foundation/connections/mappings.ts';

type EntityModel = {
  fetchPublished(scope: Scope, id: string, options: { database: Database; lock?: 'shared' }): Promise<unknown>;
};

/** Models by entity type. Some providers call plans `item` and prices `item_price`. */
const MODELS: Partial<Record<MappedEntityType, EntityModel>> = {
  customer: CustomerModel,
  plan: PlanModel,
  invoice: InvoiceModel,
  subscription: SubscriptionModel,
  payment: PaymentModel,
  credit_note: CreditNoteModel,
  addon: AddonModel,
  price: PriceModel,
  invoice_line_item: InvoiceLineItemModel,
  subscription_line_item: SubscriptionLineItemModel,
};

/** Throws unless the record exists and is published. */
export async function checkEntityExists(
  scope: Scope,
  { entity_type, entity_id }: MappedEntity,
  database: Database,
): Promise<void> {
  const model = MODELS[entity_type];
  if (!model) throw invalid('entity_type', 'has no records in this service', { allowed: Object.keys(MODELS) });
  await model.fetchPublished(scope, entity_id, { database });
}
