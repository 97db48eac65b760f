/**
 * Saves payment methods for later charges (docs.stripe.com/payments/save-and-reuse, docs.stripe.com/api/setup_intents).
 */
import type { Stripe } from 'stripe';
import type { CardSetup, ReadPaymentMethod, SavedPaymentMethod, StartedCardSetup } from '../account-payments.ts';
import { ProviderError } from '../provider-error.ts';
import { isMissing } from './errors.ts';
import { toMethodType } from './payment-outcome.ts';

/** Starts a setup. If the request names a page to return to, Stripe hosts the form; otherwise a page of the tenant shows it. */
export async function startCardSetup(stripe: Stripe, setup: CardSetup): Promise<StartedCardSetup> {
  const { key, provider_customer_id: customer, success_url, cancel_url } = setup;
  const metadata = { farthing_customer_id: setup.customer_id, farthing_set_default: String(setup.sets_default) };
  const common = { customer, allowed_payment_method_types: ['card' as const], metadata };
  const options = { idempotencyKey: key };
  if (success_url === null) {
    const terms = { ...common, usage: 'off_session' } as const;
    const { id, client_secret } = await stripe.setupIntents.create(terms, options);
    return { provider_setup_id: id, url: null, client_secret };
  }
  const session = await stripe.checkout.sessions.create(
    {
      ...common,
      mode: 'setup',
      setup_intent_data: { metadata },
      success_url,
      ...(cancel_url === null ? {} : { cancel_url }),
    },
    options,
  );
  return { provider_setup_id: session.id, url: session.url, client_secret: null };
}

export async function readPaymentMethod(stripe: Stripe, id: string): Promise<ReadPaymentMethod | null> {
  try {
    if (id.startsWith('pm_')) return toRead(await stripe.paymentMethods.retrieve(id), false);
    const setup = await loadSetup(stripe, id);
    if (setup?.status !== 'succeeded' || setup.payment_method === null) return null;
    const { payment_method, metadata } = setup;
    const method =
      typeof payment_method === 'string' ? await stripe.paymentMethods.retrieve(payment_method) : payment_method;
    return toRead(method, metadata?.['farthing_set_default'] === 'true');
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

async function loadSetup(stripe: Stripe, id: string): Promise<Stripe.SetupIntent | null> {
  if (id.startsWith('seti_')) return await stripe.setupIntents.retrieve(id);
  if (!id.startsWith('cs_')) return null;
  const { setup_intent } = await stripe.checkout.sessions.retrieve(id);
  if (setup_intent === null) return null;
  return typeof setup_intent === 'string' ? await stripe.setupIntents.retrieve(setup_intent) : setup_intent;
}

function toRead(method: Stripe.PaymentMethod, sets_default: boolean): ReadPaymentMethod {
  const { id, customer } = method;
  return {
    provider_payment_method_id: id,
    provider_customer_id: typeof customer === 'string' ? customer : (customer?.id ?? null),
    payment_method_type: toMethodType(method),
    sets_default,
  };
}

const PAGE = 100;

/**
 * Lists the payment methods of a customer. The answers must name this customer, because the id was entered by a person
 * and is part of the path.
 */
export async function listPaymentMethods(stripe: Stripe, customer_id: string): Promise<SavedPaymentMethod[]> {
  const customer = await stripe.customers.retrieve(customer_id);
  if (customer.deleted || customer.id !== customer_id)
    throw new ProviderError('person', `Stripe has no customer ${JSON.stringify(customer_id)}, or has deleted it`);
  const default_id = findDefaultId(customer);
  const methods: SavedPaymentMethod[] = [];
  for await (const method of stripe.customers.listPaymentMethods(customer_id, { limit: PAGE }))
    if (toRead(method, false).provider_customer_id === customer_id) methods.push(toSaved(method, default_id));
  return methods;
}

/** Reads the customer's default payment method for invoices; older customers have a default source instead. */
function findDefaultId({ invoice_settings, default_source }: Stripe.Customer): string | null {
  const found = invoice_settings?.default_payment_method ?? default_source ?? null;
  return typeof found === 'string' ? found : (found?.id ?? null);
}

function toSaved(method: Stripe.PaymentMethod, default_id: string | null): SavedPaymentMethod {
  const { id, card } = method;
  const common = {
    provider_payment_method_id: id,
    payment_method_type: toMethodType(method),
    is_default: id === default_id,
  };
  if (card === undefined) return { ...common, card: null };
  const { brand, last4, exp_month, exp_year } = card;
  return { ...common, card: { brand, last4, exp_month, exp_year } };
}
