/**
 * Payments at Whop. A page is a checkout configuration, which is known by its id until it is paid; a charge is a payment of a member's saved
 * payment method. Both have our key in their metadata, by which they are found again.
 */
import type {
  AccountCharge,
  AccountPaymentPage,
  AccountPayments,
  AccountRefund,
  CardSetup,
  ReadPaymentMethod,
  RequestedPayment,
  StartedCardSetup,
} from '../account-payments.ts';
import type { ExactJson } from '../exact-json.ts';
import { JsonNumber } from '../exact-json.ts';
import type { PaymentOutcome, RefundOutcome } from '../payment-provider.ts';
import { ProviderError } from '../provider-error.ts';
import { toWhopAmount } from './amounts.ts';
import { readSetupMethod, startSetup } from './card-setups.ts';
import { OLDEST_FIRST, type WhopAccess, type WhopClient } from './client.ts';
import { CLOCK_SLACK_MS } from './create-invoice.ts';
import { readMetadata, type WhopCheckout, type WhopPayment } from './records.ts';
import { refundOnce } from './refunds.ts';
import { isFailed, isPaid, toPaymentOutcome } from './states.ts';
import { parseMethodId } from './texts.ts';

const KEY = 'farthing_key';

export class WhopPayments implements AccountPayments {
  readonly #client: WhopClient;
  readonly #access: WhopAccess;

  constructor(client: WhopClient, access: WhopAccess) {
    this.#client = client;
    this.#access = access;
  }

  async charge(charge: AccountCharge): Promise<PaymentOutcome> {
    const { provider_payment_method_id: id, key } = charge;
    const method = parseMethodId(id);
    if (method === null)
      throw new ProviderError('person', `${JSON.stringify(id)} is no payment method of Whop: use mber_…:payt_…`);
    const { product_id, company_id } = this.#access;
    const product = { external_identifier: 'farthing', title: 'Invoices' };
    const plan = { ...toPlan(charge), ...(product_id === undefined ? { product } : { product_id }) };
    const body = { company_id, ...method, plan, metadata: toPaymentMetadata(charge) };
    const earlier = await this.#findCharge(charge);
    return toPaymentOutcome(earlier ?? (await this.#client.post<WhopPayment>('payments', { body, key })), charge);
  }

  async openPage(page: AccountPaymentPage): Promise<PaymentOutcome> {
    const { product_id, company_id: account_id } = this.#access;
    const body = {
      ...{
        account_id,
        mode: 'payment',
        metadata: toPaymentMetadata(page),
        redirect_url: page.success_url ?? undefined,
      },
      // The page can be paid once.
      plan: { ...toPlan(page), product_id, stock: new JsonNumber('1'), unlimited_stock: false },
    };
    const earlier = await this.#findPage(page);
    const { key } = page;
    const opened = earlier ?? (await this.#client.post<WhopCheckout>('checkout_configurations', { body, key }));
    return await this.#readPage(opened, page);
  }

  async findOutcome(payment: RequestedPayment): Promise<PaymentOutcome | null> {
    const { gateway_payment_id: id } = payment;
    const stored = id === null ? null : await this.#findStored(id, payment);
    if (stored !== null && (stored.outcome !== 'failed' || payment.is_page)) return stored;
    // A failed charge may be followed by another with a new key.
    const requested = payment.is_page ? await this.#findPageOutcome(payment) : await this.#findChargeOutcome(payment);
    if (requested !== null || stored !== null) return requested ?? stored;
    if (id === null) return null;
    throw new ProviderError('person', `Whop no longer has the payment ${id}`, { is_missing: true });
  }

  async #findStored(id: string, payment: RequestedPayment): Promise<PaymentOutcome | null> {
    if (id.startsWith('pay_')) {
      const found = await this.#client.find<WhopPayment>('payments', id);
      return found === null ? null : toPaymentOutcome(found, payment);
    }
    const page = await this.#client.find<WhopCheckout>('checkout_configurations', id);
    // A closed page may have been paid before.
    return page === null ? await this.#readClosedPage(id, payment) : await this.#readPage(page, payment);
  }

  async #findChargeOutcome(payment: RequestedPayment): Promise<PaymentOutcome | null> {
    const found = await this.#findCharge(payment);
    return found === null ? null : toPaymentOutcome(found, payment);
  }

  async #findPageOutcome(payment: RequestedPayment): Promise<PaymentOutcome | null> {
    const page = await this.#findPage(payment);
    return page === null ? null : await this.#readPage(page, payment);
  }

  /** Finds the charge with the key among those that are younger than its first request. */
  async #findCharge({ key, requested_at }: RequestedPayment): Promise<WhopPayment | null> {
    const created_after = new Date(requested_at.getTime() - CLOCK_SLACK_MS).toISOString();
    const parameters = { company_id: this.#access.company_id, created_after, ...OLDEST_FIRST };
    for await (const one of this.#client.list<WhopPayment>('payments', parameters))
      if (readMetadata(one, KEY) === key) return (await this.#client.find<WhopPayment>('payments', one.id)) ?? one;
    return null;
  }

  async #findPage({ key, requested_at }: RequestedPayment): Promise<WhopCheckout | null> {
    const created_after = String(Math.floor((requested_at.getTime() - CLOCK_SLACK_MS) / 1_000));
    const parameters = { account_id: this.#access.company_id, created_after, ...OLDEST_FIRST };
    for await (const one of this.#client.list<WhopCheckout>('checkout_configurations', parameters))
      if (readMetadata(one, KEY) === key) return one;
    return null;
  }

  async #readPage({ id, purchase_url }: WhopCheckout, payment: RequestedPayment): Promise<PaymentOutcome> {
    const payments = await this.#listPagePayments(id);
    const paid = payments.find(isPaid);
    if (paid !== undefined) return toPaymentOutcome((await this.#client.find('payments', paid.id)) ?? paid, payment);
    return { outcome: 'processing', gateway_payment_id: id, url: purchase_url ?? null, check_at: null };
  }

  async #readClosedPage(id: string, payment: RequestedPayment): Promise<PaymentOutcome | null> {
    const payments = await this.#listPagePayments(id);
    const made = payments.find(isPaid) ?? payments.find((one) => !isFailed(one));
    if (made === undefined)
      return { outcome: 'failed', gateway_payment_id: id, error: 'the page was closed before it was paid' };
    return toPaymentOutcome((await this.#client.find('payments', made.id)) ?? made, payment);
  }

  async #listPagePayments(checkout_id: string): Promise<WhopPayment[]> {
    const found: WhopPayment[] = [];
    const parameters = { company_id: this.#access.company_id, 'checkout_configuration_ids[]': checkout_id };
    for await (const one of this.#client.list<WhopPayment>('payments', parameters)) found.push(one);
    return found;
  }

  async cancel(gateway_payment_id: string): Promise<void> {
    if (!gateway_payment_id.startsWith('pay_'))
      return await this.#client.remove(`checkout_configurations/${gateway_payment_id}`);
    const payment = await this.#client.find<WhopPayment>('payments', gateway_payment_id);
    if (payment === null || isPaid(payment) || isFailed(payment)) return;
    if (payment.voidable) return void (await this.#client.post(`payments/${payment.id}/void`));
    throw new ProviderError('person', `the charge ${gateway_payment_id} is in progress and cannot be cancelled`);
  }

  async refund(refund: AccountRefund): Promise<RefundOutcome> {
    return await refundOnce(this.#client, await this.#loadPaid(refund.gateway_payment_id), refund);
  }

  /** Loads the payment to refund. A payment that was requested as a page may still be known by the id of the page. */
  async #loadPaid(id: string): Promise<WhopPayment> {
    const payment_id = id.startsWith('pay_') ? id : (await this.#listPagePayments(id)).find(isPaid)?.id;
    const payment = payment_id === undefined ? null : await this.#client.find<WhopPayment>('payments', payment_id);
    if (payment === null) throw new ProviderError('person', `nobody has paid ${id} at Whop`);
    return payment;
  }

  async startCardSetup(setup: CardSetup): Promise<StartedCardSetup> {
    return await startSetup(this.#client, this.#access, setup);
  }

  async readPaymentMethod(provider_entity_id: string): Promise<ReadPaymentMethod | null> {
    return await readSetupMethod(this.#client, this.#access, provider_entity_id);
  }
}

function toPlan({ amount, currency, invoice_number, invoice_id }: RequestedPayment) {
  return {
    ...{ plan_type: 'one_time', initial_price: toWhopAmount(amount, currency), currency: currency.toLowerCase() },
    ...{ title: `Invoice ${invoice_number ?? invoice_id}`, visibility: 'hidden', force_create_new_plan: true },
  };
}

function toPaymentMetadata({ key, payment_id, invoice_id, invoice_number }: RequestedPayment): ExactJson {
  const ids = { farthing_payment_id: payment_id, farthing_invoice_id: invoice_id };
  return { [KEY]: key, ...ids, farthing_invoice_number: invoice_number ?? undefined };
}
