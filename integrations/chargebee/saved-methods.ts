/** Saved payment methods at Chargebee (apidocs.chargebee.com, "Payment sources"), which the customer manages on a hosted page. */
import type { CardSetup, ReadPaymentMethod, SavedPaymentMethod, StartedCardSetup } from '../account-payments.ts';
import { ProviderError } from '../provider-error.ts';
import type { ChargebeeClient } from './client.ts';
import type { ChargebeePaymentSource } from './records.ts';

const CHARGEABLE = ['valid', 'expiring'];

/** Opens the page on which the customer adds a payment method. The event of the new one names it. */
export async function startCardSetup(client: ChargebeeClient, setup: CardSetup): Promise<StartedCardSetup> {
  const { key, provider_customer_id, success_url } = setup;
  const form = { customer: { id: provider_customer_id }, redirect_url: success_url ?? undefined };
  const page = await client.create('hosted_pages/manage_payment_sources', 'hosted_page', { form, key });
  return { provider_setup_id: page.id, url: page.url, client_secret: null };
}

export async function readPaymentMethod(client: ChargebeeClient, id: string): Promise<ReadPaymentMethod | null> {
  const source = await client.read('payment_source', id);
  if (source === null) return null;
  const customer = await client.read('customer', source.customer_id);
  return {
    provider_payment_method_id: id,
    provider_customer_id: source.deleted === true ? null : source.customer_id,
    payment_method_type: toMethodType(source),
    sets_default: customer?.primary_payment_source_id === id,
  };
}

export async function listPaymentMethods(client: ChargebeeClient, customer_id: string): Promise<SavedPaymentMethod[]> {
  const customer = await client.read('customer', customer_id);
  if (customer === null || customer.deleted === true)
    throw new ProviderError('person', `Chargebee has no customer ${JSON.stringify(customer_id)}, or has deleted it`);
  const methods: SavedPaymentMethod[] = [];
  for await (const source of client.list('payment_source', { customer_id: { is: customer_id } }))
    if (source.customer_id === customer_id && source.deleted !== true && CHARGEABLE.includes(source.status))
      methods.push(toSavedMethod(source, customer.primary_payment_source_id));
  return methods;
}

/** Every type that is not a debit of a bank account counts as CARD. */
function toMethodType({ type }: ChargebeePaymentSource): 'CARD' | 'ACH' {
  return type === 'direct_debit' ? 'ACH' : 'CARD';
}

function toSavedMethod(source: ChargebeePaymentSource, default_id: string | undefined): SavedPaymentMethod {
  const { id, card } = source;
  const common = {
    provider_payment_method_id: id,
    payment_method_type: toMethodType(source),
    is_default: id === default_id,
  };
  if (card === undefined) return { ...common, card: null };
  const { brand, last4, expiry_month, expiry_year } = card;
  return { ...common, card: { brand, last4, exp_month: Number(expiry_month), exp_year: Number(expiry_year) } };
}
