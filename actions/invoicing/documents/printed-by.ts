/** Sender, receiver and time zone of an invoice, for its document, its credit notes and its mail. */
import type { Scope } from '../../../core/foundation/scope.ts';
import { type DocumentCustomer, formatAddress } from '../../../core/invoicing/document/party.ts';
import type { SettingValue } from '../../../core/platform/setting/record.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import { CustomerModel } from '../../../storage/models/catalog/customer.ts';
import { loadSetting } from '../../../storage/models/foundation/setting.ts';
import { TenantModel } from '../../../storage/models/foundation/tenant.ts';
import type { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';

/** Loads the time zone of the subscription; for a manual invoice, the time zone of the invoice numbers. */
export async function loadInvoiceTimezone(
  { subscription_id }: InvoiceModel,
  scope: Scope,
  database: Database,
): Promise<string> {
  if (!subscription_id) return (await loadSetting(scope, 'invoice_config', database)).timezone;
  return (await SubscriptionModel.fetch(scope, subscription_id, { database })).timezone;
}

/** Loads the customer. The exemption was fixed at finalization. */
export async function loadReceiver(invoice: InvoiceModel, database: Database): Promise<DocumentCustomer> {
  const customer = await CustomerModel.fetch(invoice, invoice.customer_id, { database });
  return {
    ...customer,
    tax_exempt: invoice.finalized_at ? (invoice.tax_exempt ?? 'none') : customer.tax_exempt,
    tax_ids: (customer.tax_ids ?? []).map(({ value }) => value),
  };
}

type InvoiceSeller = { readonly name: string; readonly lines: readonly string[] };

/** Loads the sender from the setting, otherwise from the tenant's own details. */
export async function loadSeller(
  settings: SettingValue<'invoice_pdf_config'>,
  { tenant_id, database }: { tenant_id: string; database: Database },
): Promise<InvoiceSeller> {
  if (settings.company) return deriveSeller(settings, undefined);
  const [tenant] = await TenantModel.ofTenant(tenant_id, database);
  return deriveSeller(settings, tenant);
}

export type PrintedTenant = Pick<TenantModel, 'name' | 'is_named' | 'billing_details'>;

/** Derives the sender. A name of the tenant that no person chose is omitted. */
export function deriveSeller(
  { company, language }: SettingValue<'invoice_pdf_config'>,
  tenant: PrintedTenant | undefined,
): InvoiceSeller {
  if (company) {
    const { name, lines, tax_id, email, website } = company;
    return { name, lines: [...lines, ...[tax_id, email, website].flatMap((line) => line || [])] };
  }
  const { address, email } = (tenant?.billing_details ?? {}) as {
    address?: Record<string, string> | null;
    email?: string | null;
  };
  const parts = Object.fromEntries(
    Object.entries(address ?? {}).map(([key, value]) => [key.replace('address_', ''), value]),
  );
  return {
    name: tenant?.is_named ? tenant.name : '',
    lines: [...formatAddress(parts, language), ...(email ? [email] : [])],
  };
}
