/**
 * Payments at Razorpay. A charge is an order with one recurring payment, a page is a payment link. Our key is the receipt of an order, the
 * reference of a link and the receipt of a refund. Each of them is searched for by the key before it is created.
 */
import type { Orders } from 'razorpay/dist/types/orders.js';
import type { PaymentLinks } from 'razorpay/dist/types/paymentLink.js';
import type { Payments } from 'razorpay/dist/types/payments.js';
import { DAY_SECONDS } from '../../core/foundation/time/durations.ts';
import type {
  AccountCharge,
  AccountPaymentPage,
  AccountPayments,
  AccountRefund,
  SavedPaymentMethod,
} from '../account-payments.ts';
import type { PaymentOutcome, RefundOutcome } from '../payment-provider.ts';
import { isRefused, ProviderError } from '../provider-error.ts';
import { fromSubunits, toPayableSubunits } from './amounts.ts';
import { fetchIfExists, type RazorpayClient, translateErrors, unwrapError } from './client.ts';
import { readRefunds, refundOnce } from './refunds.ts';
import { toSavedPaymentMethods } from './saved-methods.ts';
import { isRazorpayId, readNote, toNotes, toReference } from './texts.ts';

const PAGE = 100;
/** Time for which a payment link can be paid. Razorpay sets no end itself. */
const PAGE_SECONDS = DAY_SECONDS;

type PaymentQuery = Parameters<AccountPayments['findOutcome']>[0];

export class RazorpayPayments implements AccountPayments {
  readonly #razorpay: RazorpayClient;

  constructor(razorpay: RazorpayClient) {
    this.#razorpay = razorpay;
  }

  async charge(charge: AccountCharge): Promise<PaymentOutcome> {
    return await translateErrors(async () => {
      checkId(charge.provider_payment_method_id, 'token');
      const amount = toPayableSubunits(charge.amount, charge.currency);
      const [order] = await this.#listOrders(charge);
      if (order === undefined) return await this.#payOrder(await this.#createOrder(charge, amount), charge);
      return (await this.#findAttempt(order)) ?? (await this.#payOrder(order, charge));
    });
  }

  /** Pays the order. Razorpay accepts one successful payment per order, so a repeated attempt cannot pay twice. */
  async #payOrder({ id, amount }: Orders.RazorpayOrder, charge: AccountCharge): Promise<PaymentOutcome> {
    const { email, contact } = await this.#loadContact(charge.provider_customer_id);
    const body = {
      ...{ email, contact, amount, currency: charge.currency.toUpperCase() },
      ...{ order_id: id, customer_id: charge.provider_customer_id },
      ...{ token: charge.provider_payment_method_id, recurring: true, notes: toPaymentNotes(charge) },
      description: describePayment(charge),
    };
    try {
      const { razorpay_payment_id } = await this.#razorpay.payments.createRecurringPayment(body);
      const made = await this.#findAttempt({ id });
      return made ?? toProcessing(razorpay_payment_id ?? id);
    } catch (thrown) {
      return await this.#readDecline({ id }, thrown);
    }
  }

  /**
   * Reads the failed payment that a declined charge leaves on the order. Any other rejection leaves no payment and is
   * thrown.
   */
  async #readDecline(order: Pick<Orders.RazorpayOrder, 'id'>, thrown: unknown): Promise<PaymentOutcome> {
    const error = unwrapError(thrown);
    const made = isRefused(error) ? await this.#findAttempt(order) : null;
    if (made === null) throw error;
    return made;
  }

  /** Loads the email and phone number of the customer, which Razorpay requires for each charge. */
  async #loadContact(customer_id: string): Promise<{ email: string; contact: string }> {
    checkId(customer_id, 'cust');
    const { email, contact } = await this.#razorpay.customers.fetch(customer_id);
    if (!email || !contact)
      throw new ProviderError(
        'person',
        `Razorpay charges only customers with an email and a phone number: add them to ${customer_id} there`,
      );
    return { email, contact: String(contact) };
  }

  /** Lists the orders with this key; the caller uses the first. Orders with more payment attempts come first, then older ones. */
  async #listOrders({ key }: PaymentQuery): Promise<Orders.RazorpayOrder[]> {
    const receipt = toReference(key);
    const { items } = await this.#razorpay.orders.all({ receipt, count: PAGE });
    return items
      .filter((order) => order.receipt === receipt)
      .sort((a, b) => b.attempts - a.attempts || a.created_at - b.created_at || (a.id < b.id ? -1 : 1));
  }

  /**
   * Creates an order. If a concurrent request also created one, this request pays neither and is repeated, so that only
   * one is paid.
   */
  async #createOrder(charge: AccountCharge, amount: number): Promise<Orders.RazorpayOrder> {
    const created = await this.#razorpay.orders.create({
      amount,
      currency: charge.currency.toUpperCase(),
      receipt: toReference(charge.key),
      payment_capture: true,
      notes: toPaymentNotes(charge),
    } as Orders.RazorpayOrderCreateRequestBody);
    const orders = await this.#listOrders(charge);
    if (orders.every(({ id }) => id === created.id)) return created;
    throw new ProviderError(
      'wait',
      `${charge.payment_id} was charged at Razorpay twice at once: one attempt is repeated`,
    );
  }

  /** Returns the outcome of an order; null if no payment of it was attempted. */
  async #findAttempt({ id }: Pick<Orders.RazorpayOrder, 'id'>): Promise<PaymentOutcome | null> {
    const { items } = await this.#razorpay.orders.fetchPayments(id);
    const best = items.toSorted((a, b) => rankPayment(a) - rankPayment(b))[0];
    return best === undefined ? null : toOutcome(best);
  }

  async openPage(page: AccountPaymentPage): Promise<PaymentOutcome> {
    return await translateErrors(async () => {
      const amount = toPayableSubunits(page.amount, page.currency);
      return toLinkOutcome((await this.#findLink(page)) ?? (await this.#createLink(page, amount)));
    });
  }

  /**
   * Creates a payment link. Its reference is unique, so of two concurrent requests with one key Razorpay refuses the
   * second.
   */
  async #createLink(page: AccountPaymentPage, amount: number): Promise<PaymentLinks.RazorpayPaymentLink> {
    const body = {
      amount,
      currency: page.currency.toUpperCase(),
      accept_partial: false,
      expire_by: Math.floor(Date.now() / 1_000) + PAGE_SECONDS,
      reference_id: toReference(page.key),
      description: describePayment(page),
      notify: { sms: false, email: false },
      reminder_enable: false,
      notes: toPaymentNotes(page),
      ...(page.success_url === null ? {} : { callback_url: page.success_url, callback_method: 'get' }),
    };
    try {
      return await this.#razorpay.paymentLink.create(body as PaymentLinks.RazorpayPaymentLinkCreateRequestBody);
    } catch (thrown) {
      const error = unwrapError(thrown);
      const found = isRefused(error) ? await this.#findLink(page) : null;
      if (found === null) throw error;
      return found;
    }
  }

  async #findLink({ key }: PaymentQuery): Promise<PaymentLinks.RazorpayPaymentLink | null> {
    const reference_id = toReference(key);
    const query = { reference_id } as Parameters<RazorpayClient['paymentLink']['all']>[0];
    const { payment_links } = await this.#razorpay.paymentLink.all(query);
    return payment_links.find((link) => link.reference_id === reference_id) ?? null;
  }

  async findOutcome(payment: PaymentQuery): Promise<PaymentOutcome | null> {
    return await translateErrors(async () => {
      const outcome = await this.#findUnrefunded(payment);
      return outcome === null ? null : await this.#addRefunds(outcome, payment);
    });
  }

  /**
   * Reads the payment with the stored id first, because a person may have stored the id of a payment outside the order. If that payment has
   * failed, the order may have another payment that was successful.
   */
  async #findUnrefunded(payment: PaymentQuery): Promise<PaymentOutcome | null> {
    const { gateway_payment_id: id } = payment;
    if (id === null || !isRazorpayId(id, 'pay', 'plink')) return await this.#findByKey(payment);
    const stored = await fetchIfExists(() => this.#readStored(id, payment));
    if (stored !== null && (stored.outcome !== 'failed' || isRazorpayId(id, 'plink'))) return stored;
    const requested = await this.#findByKey(payment);
    if (requested !== null && (stored === null || requested.outcome !== 'failed')) return requested;
    if (stored !== null) return stored;
    throw new ProviderError('person', `Razorpay no longer has the payment ${id}`, { is_missing: true });
  }

  async #readStored(id: string, payment: PaymentQuery): Promise<PaymentOutcome> {
    if (isRazorpayId(id, 'plink')) return toLinkOutcome(await this.#razorpay.paymentLink.fetch(id));
    const stored = await this.#razorpay.payments.fetch(id);
    const outcome = toOutcome(stored);
    return outcome.outcome === 'succeeded' ? { ...outcome, ...toReceivedAmount(stored, payment) } : outcome;
  }

  async #findByKey(payment: PaymentQuery): Promise<PaymentOutcome | null> {
    const link = await this.#findLink(payment);
    if (link !== null) return toLinkOutcome(link);
    const [order] = await this.#listOrders(payment);
    return order === undefined ? null : await this.#findAttempt(order);
  }

  /** Adds the refunds of a payment, which a person may have made in Razorpay's dashboard. */
  async #addRefunds(outcome: PaymentOutcome, { currency }: PaymentQuery): Promise<PaymentOutcome> {
    if (outcome.outcome !== 'succeeded' || !isRazorpayId(outcome.gateway_payment_id, 'pay')) return outcome;
    const read = await readRefunds(this.#razorpay, { id: outcome.gateway_payment_id, currency });
    return read.refunds.length === 0 ? outcome : { ...outcome, ...read };
  }

  async cancel(gateway_payment_id: string): Promise<void> {
    await translateErrors(async () => {
      if (!isRazorpayId(gateway_payment_id, 'plink')) return await this.#checkEnded(gateway_payment_id);
      if (await this.#hasLinkEnded(gateway_payment_id)) return;
      try {
        await this.#razorpay.paymentLink.cancel(gateway_payment_id);
      } catch (thrown) {
        // The link could not be cancelled. If the customer has paid it, that is no error.
        const error = unwrapError(thrown);
        if (!isRefused(error) || !(await this.#hasLinkEnded(gateway_payment_id))) throw error;
      }
    });
  }

  async #hasLinkEnded(id: string): Promise<boolean> {
    const { status } = await this.#razorpay.paymentLink.fetch(id);
    return ENDED_LINKS.has(status);
  }

  /** Refuses to cancel a payment in progress: Razorpay cannot take back a charge before it has ended. */
  async #checkEnded(gateway_payment_id: string): Promise<void> {
    checkId(gateway_payment_id, 'pay');
    const { status } = await this.#razorpay.payments.fetch(gateway_payment_id);
    if (status !== 'created' && status !== 'authorized') return;
    throw new ProviderError('person', `the charge ${gateway_payment_id} is ${status} and cannot be cancelled`);
  }

  async refund(refund: AccountRefund): Promise<RefundOutcome> {
    return await translateErrors(async () =>
      refundOnce(this.#razorpay, await this.#findPaidId(refund.gateway_payment_id), refund),
    );
  }

  /**
   * Finds the id of the paid payment. A payment that was requested as a page may still be known by the id of its link.
   */
  async #findPaidId(gateway_payment_id: string): Promise<string> {
    if (!isRazorpayId(gateway_payment_id, 'plink')) {
      checkId(gateway_payment_id, 'pay');
      return gateway_payment_id;
    }
    const paid = findPaidId(await this.#razorpay.paymentLink.fetch(gateway_payment_id));
    if (paid === null) throw new ProviderError('person', `nobody has paid ${gateway_payment_id} at Razorpay`);
    return paid;
  }

  async listPaymentMethods(provider_customer_id: string): Promise<readonly SavedPaymentMethod[]> {
    return await translateErrors(async () => {
      checkId(provider_customer_id, 'cust');
      const { items } = await this.#razorpay.customers.fetchTokens(provider_customer_id);
      return toSavedPaymentMethods(items);
    });
  }
}

function checkId(id: string, prefix: 'cust' | 'pay' | 'token'): void {
  if (!isRazorpayId(id, prefix))
    throw new ProviderError('person', `${JSON.stringify(id)} is no id of Razorpay: it must begin with ${prefix}_`);
}

function toPaymentNotes({ payment_id, invoice_id, invoice_number }: PaymentQuery): Record<string, string> {
  const farthing_invoice_number = invoice_number;
  return toNotes({ farthing_payment_id: payment_id, farthing_invoice_id: invoice_id, farthing_invoice_number });
}

function describePayment({ invoice_number, invoice_id }: PaymentQuery): string {
  return `Invoice ${invoice_number ?? invoice_id}`;
}

/**
 * Builds the outcome of a pending payment. It names no time for the next check, because a webhook or the default
 * recheck finds the result.
 */
function toProcessing(gateway_payment_id: string, url: string | null = null): PaymentOutcome {
  return { outcome: 'processing', gateway_payment_id, url, check_at: null };
}

/**
 * Rank of each payment status of an order. The payment with the first rank decides the outcome, so a paid one precedes
 * failed ones.
 */
const STATUS_RANKS: readonly Payments.RazorpayPayment['status'][] = [
  'captured',
  'refunded',
  'authorized',
  'created',
  'failed',
];

function rankPayment({ status }: Payments.RazorpayPayment): number {
  return STATUS_RANKS.indexOf(status);
}

function toOutcome(payment: Payments.RazorpayPayment): PaymentOutcome {
  const { id, status, error_code, error_reason, error_description } = payment;
  switch (status) {
    case 'captured':
    case 'refunded':
      return { outcome: 'succeeded', gateway_payment_id: id };
    case 'failed': {
      const code = error_reason || error_code || 'failed';
      return {
        outcome: 'failed',
        gateway_payment_id: id,
        error: `${code}: ${error_description || 'the bank has declined the charge'}`,
      };
    }
    case 'authorized':
    case 'created':
      return toProcessing(id);
    default:
      throw new ProviderError('person', `the payment ${id} has the status ${String(status)} at Razorpay`, {
        is_of_record: true,
      });
  }
}

/**
 * Reads the received amount of a payment that this service did not request. For a requested payment the requested amount counts, because
 * the amount at Razorpay may contain fees that the customer pays to Razorpay.
 */
function toReceivedAmount(stored: Payments.RazorpayPayment, { payment_id, amount, currency, is_page }: PaymentQuery) {
  if (is_page || readNote(stored, 'farthing_payment_id') === payment_id) return {};
  const received = fromSubunits(Number(stored.amount), stored.currency);
  if (stored.currency.toLowerCase() === currency) return { received_amount: received };
  throw new ProviderError(
    'wait',
    `${amount} ${currency} was requested, but Razorpay received ${received} ${stored.currency.toLowerCase()} (${stored.id})`,
    { is_of_record: true },
  );
}

const ENDED_LINKS: ReadonlySet<string> = new Set(['paid', 'cancelled', 'expired']);

function toLinkOutcome(link: PaymentLinks.RazorpayPaymentLink): PaymentOutcome {
  const { id, status, short_url } = link;
  if (status === 'paid') return { outcome: 'succeeded', gateway_payment_id: findPaidId(link) ?? id };
  if (status === 'cancelled')
    return { outcome: 'failed', gateway_payment_id: id, error: 'cancelled: the page was closed before it was paid' };
  if (status === 'expired')
    return { outcome: 'failed', gateway_payment_id: id, error: 'expired: nobody has paid while the page was open' };
  return toProcessing(id, short_url);
}

type LinkPayment = Pick<PaymentLinks.RazorpayPaymentBaseRequestBody, 'payment_id' | 'status'>;

/**
 * Finds the id of the payment that paid the link. The library declares one payment; Razorpay returns a list, or null before the first
 * attempt.
 */
function findPaidId({ payments }: PaymentLinks.RazorpayPaymentLink): string | null {
  const list = (payments ?? []) as LinkPayment | readonly LinkPayment[];
  const attempts = Array.isArray(list) ? (list as readonly LinkPayment[]) : [list as LinkPayment];
  return attempts.find(({ status }) => status === 'captured')?.payment_id ?? null;
}
