/** Setups, in which a customer saves a payment method on a page of Whop (docs.whop.com/developer/guides/save-payment-methods). */
import type { CardSetup, ReadPaymentMethod, StartedCardSetup } from '../account-payments.ts';
import { ProviderError } from '../provider-error.ts';
import type { WhopAccess, WhopClient } from './client.ts';
import { readMetadata, type WhopCheckout, type WhopSetup } from './records.ts';
import { toMethodId } from './texts.ts';

const CUSTOMER = 'farthing_customer_id';
const DEFAULT = 'farthing_sets_default';

const BANK_DEBITS = new Set(['us_bank_account', 'sepa_debit', 'acss_debit', 'au_becs_debit', 'bacs_debit']);

export async function startSetup(
  client: WhopClient,
  { company_id }: WhopAccess,
  { key, customer_id, success_url, sets_default }: CardSetup,
): Promise<StartedCardSetup> {
  if (success_url === null)
    throw new ProviderError('person', 'Whop saves payment methods on a page of its own: send success_url');
  const metadata = { [CUSTOMER]: customer_id, [DEFAULT]: String(sets_default) };
  const body = { account_id: company_id, mode: 'setup', metadata, redirect_url: success_url };
  const { id, purchase_url } = await client.post<WhopCheckout>('checkout_configurations', { body, key });
  return { provider_setup_id: id, url: purchase_url ?? null, client_secret: null };
}

/** Reads the payment method of a setup, or of the page of one. Null if the setup was not started here, or has not ended. */
export async function readSetupMethod(
  client: WhopClient,
  access: WhopAccess,
  id: string,
): Promise<ReadPaymentMethod | null> {
  const isPage = id.startsWith('ch_');
  const setup = isPage ? await findPageSetup(client, access, id) : await client.find<WhopSetup>('setup_intents', id);
  if (setup?.status !== 'succeeded' || !setup.member || !setup.payment_method) return null;
  const origin = await findOrigin(client, setup);
  const provider_customer_id = origin === null ? null : readMetadata(origin, CUSTOMER);
  if (origin === null || provider_customer_id === null) return null;
  return {
    provider_payment_method_id: toMethodId(setup.member.id, setup.payment_method.id),
    provider_customer_id,
    payment_method_type: BANK_DEBITS.has(setup.payment_method.payment_method_type) ? 'ACH' : 'CARD',
    sets_default: readMetadata(origin, DEFAULT) === 'true',
  };
}

async function findPageSetup(
  client: WhopClient,
  { company_id }: WhopAccess,
  checkout_id: string,
): Promise<WhopSetup | null> {
  const page = await client.find<WhopCheckout>('checkout_configurations', checkout_id);
  if (page === null) return null;
  const parameters = { company_id, created_after: page.created_at };
  for await (const setup of client.list<WhopSetup>('setup_intents', parameters))
    if (setup.checkout_configuration?.id === checkout_id && setup.status === 'succeeded') return setup;
  return null;
}

/** Finds the record with our metadata. Whop does not say whether a setup repeats those of its page. */
async function findOrigin(client: WhopClient, setup: WhopSetup): Promise<WhopSetup | WhopCheckout | null> {
  if (readMetadata(setup, CUSTOMER) !== null) return setup;
  const { checkout_configuration: page } = setup;
  return page ? await client.find<WhopCheckout>('checkout_configurations', page.id) : null;
}
