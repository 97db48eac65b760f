/**
 * Charges, payment pages and refunds at Stripe (docs.stripe.com/api/payment_intents, /checkout/sessions, /refunds; docs.stripe.com/payments,
 * "Off-session payments"). A charge is a payment intent, a page is a Checkout session. Both have our key in their metadata, so that they
 * are found after the idempotency key is forgotten.
 */
import type { Stripe } from 'stripe';
import { sumSucceeded } from '../../core/payments/provider-payments.ts';
import type {
  AccountCharge,
  AccountPaymentPage,
  AccountPayments,
  AccountRefund,
  CardSetup,
  ReadPaymentMethod,
  RequestedPayment,
  SavedPaymentMethod,
  StartedCardSetup,
} from '../account-payments.ts';
import type { PaymentOutcome, RefundOutcome } from '../payment-provider.ts';
import { ProviderError } from '../provider-error.ts';
import { toMinorUnits } from './amounts.ts';
import { findDeclinedIntent, isMissing, isRefused, translate } from './errors.ts';
import { payInvoice } from './money-out.ts';
import { isWaitingForCustomer, toIntentOutcome, toRefundOutcome } from './payment-outcome.ts';
import { listRefunds } from './pulled-invoice.ts';
import { listPaymentMethods, readPaymentMethod, startCardSetup } from './saved-cards.ts';
import { changeOnce, findByMetadata, sendOnce, toCreatedSince } from './send-once.ts';

const PAGE = 100;
/** Page for the customer's return, which Stripe requires and requests may omit. */
const DEFAULT_RETURN_URL = 'https://stripe.com';
/** Empty search result. Stripe has no search for Checkout sessions. */
const NOTHING_FOUND = async function* () {};

export class StripePayments implements AccountPayments {
  readonly #stripe: Stripe;

  constructor(stripe: Stripe) {
    this.#stripe = stripe;
  }

  async charge(charge: AccountCharge): Promise<PaymentOutcome> {
    return await translate(async () => {
      const intent = await sendOnce({
        ...toKeyAge(charge),
        find: () => this.#findIntent(charge),
        send: (options) => orDeclined(this.#stripe.paymentIntents.create(toIntent(charge), options)),
      });
      const current = isWaitingForCustomer(intent) ? await this.#askCustomer(intent, charge) : intent;
      return await this.#conclude(current, charge);
    });
  }

  /** Starts the customer's confirmation, which the bank requires: the same payment intent gets a page for it. */
  async #askCustomer({ id }: Stripe.PaymentIntent, charge: AccountCharge): Promise<Stripe.PaymentIntent> {
    const payment_method = charge.provider_payment_method_id;
    const return_url = charge.success_url ?? DEFAULT_RETURN_URL;
    const readChanged = async () => {
      const intent = await this.#stripe.paymentIntents.retrieve(id);
      return isWaitingForCustomer(intent) ? null : intent;
    };
    return await changeOnce({
      ...toKeyAge(charge),
      key: `${charge.key}:confirm`,
      find: readChanged,
      send: (options) => orDeclined(this.#stripe.paymentIntents.confirm(id, { payment_method, return_url }, options)),
    });
  }

  async openPage(page: AccountPaymentPage): Promise<PaymentOutcome> {
    return await translate(async () => {
      const session = await sendOnce({
        ...toKeyAge(page),
        find: () => this.#findSession(page),
        send: (options) => this.#stripe.checkout.sessions.create(toSession(page), options),
      });
      return await this.#concludeSession(session, page);
    });
  }

  async findOutcome(payment: RequestedPayment): Promise<PaymentOutcome | null> {
    return await translate(async () => {
      const { gateway_payment_id, is_page } = payment;
      if (is_page && (gateway_payment_id === null || isSession(gateway_payment_id))) {
        const session =
          gateway_payment_id === null
            ? await this.#findSession(payment)
            : await this.#stripe.checkout.sessions.retrieve(gateway_payment_id, SESSION_EXPANDED);
        return session === null ? null : await this.#addRefunds(await this.#concludeSession(session, payment), payment);
      }
      const intent =
        gateway_payment_id === null
          ? await this.#findIntent(payment)
          : await this.#stripe.paymentIntents.retrieve(gateway_payment_id, INTENT_EXPANDED);
      // A charge that was interrupted before the customer got a page is repeated and then gets its page.
      if (intent === null || isWaitingForCustomer(intent)) return null;
      return await this.#addRefunds(await this.#conclude(intent, payment), payment);
    });
  }

  /** Adds the refunds of a payment, which a person may have made in Stripe's dashboard. */
  async #addRefunds(outcome: PaymentOutcome, { currency }: RequestedPayment): Promise<PaymentOutcome> {
    if (outcome.outcome !== 'succeeded') return outcome;
    const refunds = await listRefunds(this.#stripe, { payment_intent: outcome.gateway_payment_id }, currency);
    return refunds.length === 0 ? outcome : { ...outcome, refunds, refunded_amount: sumSucceeded(refunds) };
  }

  async #findIntent({ key, requested_at, provider_customer_id }: RequestedPayment) {
    const terms = { customer: provider_customer_id, limit: PAGE, created: toCreatedRange(requested_at) };
    return await findByMetadata<Stripe.PaymentIntent>(['farthing_key', key], {
      list: () => this.#stripe.paymentIntents.list(terms),
      search: (query) => this.#stripe.paymentIntents.search({ query }),
      accepts: () => true,
    });
  }

  async #findSession({ key, requested_at, provider_customer_id }: RequestedPayment) {
    const terms = { customer: provider_customer_id, limit: PAGE, created: toCreatedRange(requested_at) };
    const found = await findByMetadata<Stripe.Checkout.Session>(['farthing_key', key], {
      list: () => this.#stripe.checkout.sessions.list(terms),
      search: NOTHING_FOUND,
      accepts: () => true,
    });
    return found === null ? null : await this.#stripe.checkout.sessions.retrieve(found.id, SESSION_EXPANDED);
  }

  async #concludeSession(session: Stripe.Checkout.Session, payment: RequestedPayment): Promise<PaymentOutcome> {
    const { id, status, url, payment_intent } = session;
    if (status === 'open') return { outcome: 'processing', gateway_payment_id: id, url, check_at: null };
    if (status === 'expired' || payment_intent === null)
      return { outcome: 'failed', gateway_payment_id: id, error: 'expired: nobody has paid while the page was open' };
    const intent =
      typeof payment_intent === 'string'
        ? await this.#stripe.paymentIntents.retrieve(payment_intent, INTENT_EXPANDED)
        : payment_intent;
    return await this.#conclude(intent, payment);
  }

  async #conclude(intent: Stripe.PaymentIntent, payment: RequestedPayment): Promise<PaymentOutcome> {
    const outcome = toIntentOutcome(intent, payment, new Date());
    if (outcome.outcome === 'succeeded') await this.#payInvoice(intent, payment);
    if (outcome.outcome !== 'failed' || intent.status !== 'requires_action') return outcome;
    await this.cancel(intent.id);
    const ended = await this.#stripe.paymentIntents.retrieve(intent.id, INTENT_EXPANDED);
    if (ended.status !== 'requires_action') return await this.#conclude(ended, payment);
    // Stripe refuses to cancel the payment of a Checkout page. Until it ends there, the customer can still pay it.
    return { outcome: 'processing', gateway_payment_id: intent.id, url: null, check_at: null };
  }

  /**
   * Applies the payment to the pushed invoice, so that the customer cannot pay it again at Stripe. A refusal does not change the received
   * money: the invoice may already be paid, void or deleted at Stripe.
   */
  async #payInvoice(intent: Stripe.PaymentIntent, payment: RequestedPayment): Promise<void> {
    const { provider_invoice_id } = payment;
    if (provider_invoice_id === null) return;
    try {
      await payInvoice(this.#stripe, { intent, payment, provider_invoice_id });
    } catch (error) {
      const isNeeded = error instanceof ProviderError && error.error_class === 'person';
      if (!isRefused(error) && !isMissing(error) && !isNeeded) throw error;
    }
  }

  /**
   * Cancels a payment. It needs no key, because a second cancellation is refused. A refusal means that the payment has
   * ended.
   */
  async cancel(gateway_payment_id: string): Promise<void> {
    await translate(async () => {
      try {
        if (isSession(gateway_payment_id)) await this.#stripe.checkout.sessions.expire(gateway_payment_id);
        else await this.#stripe.paymentIntents.cancel(gateway_payment_id);
      } catch (error) {
        if (!isRefused(error)) throw error;
      }
    });
  }

  async refund(refund: AccountRefund): Promise<RefundOutcome> {
    return await translate(async () => {
      const { gateway_payment_id, amount, currency, refund_id } = refund;
      const paid = toRefundedPayment(gateway_payment_id);
      const terms = {
        ...paid,
        amount: toMinorUnits(amount, currency),
        metadata: { farthing_refund_id: refund_id },
      };
      const find = () =>
        findByMetadata<Stripe.Refund>(['farthing_refund_id', refund_id], {
          list: () => this.#stripe.refunds.list({ ...paid, limit: PAGE }),
          search: NOTHING_FOUND,
          accepts: () => true,
        });
      const made = await sendOnce({
        ...toKeyAge(refund),
        find,
        send: (options) => this.#stripe.refunds.create(terms, options),
      });
      // Reads the current state: a repeated request returns the first answer, and even a succeeded refund may fail later.
      return toRefundOutcome(await this.#stripe.refunds.retrieve(made.id));
    });
  }

  async startCardSetup(setup: CardSetup): Promise<StartedCardSetup> {
    return await translate(() => startCardSetup(this.#stripe, setup));
  }

  async readPaymentMethod(provider_entity_id: string): Promise<ReadPaymentMethod | null> {
    return await translate(() => readPaymentMethod(this.#stripe, provider_entity_id));
  }

  async listPaymentMethods(provider_customer_id: string): Promise<readonly SavedPaymentMethod[]> {
    return await translate(() => listPaymentMethods(this.#stripe, provider_customer_id));
  }
}

const INTENT_EXPANDED = { expand: ['payment_method'] };
const SESSION_EXPANDED = { expand: ['payment_intent.payment_method'] };

function isSession(id: string): boolean {
  return id.startsWith('cs_');
}

/** Names the payment of a refund: payments that Stripe reported may be charges without an intent. */
function toRefundedPayment(id: string): { payment_intent: string } | { charge: string } {
  return /^(ch|py)_/.test(id) ? { charge: id } : { payment_intent: id };
}

/** Returns the payment intent of a charge. If the charge was declined, Stripe's error contains it. */
async function orDeclined(request: Promise<Stripe.PaymentIntent>): Promise<Stripe.PaymentIntent> {
  try {
    return await request;
  } catch (error) {
    const declined = findDeclinedIntent(error);
    if (declined === null) throw error;
    return declined;
  }
}

function toKeyAge({ key, key_age_seconds }: Pick<RequestedPayment, 'key' | 'key_age_seconds'>) {
  return { key, key_age_seconds, is_key_renewed: false };
}

function toCreatedRange(requested_at: Date): { gte: number } {
  return { gte: toCreatedSince(requested_at) };
}

function toIntent(charge: AccountCharge): Stripe.PaymentIntentCreateParams {
  return {
    amount: toMinorUnits(charge.amount, charge.currency),
    currency: charge.currency,
    customer: charge.provider_customer_id,
    payment_method: charge.provider_payment_method_id,
    confirm: true,
    off_session: true,
    return_url: charge.success_url ?? DEFAULT_RETURN_URL,
    description: toDescription(charge),
    metadata: toMetadata(charge),
  };
}

/** Builds a Checkout session, which Stripe closes after 24 hours. */
function toSession(page: AccountPaymentPage): Stripe.Checkout.SessionCreateParams {
  const { currency, success_url, cancel_url } = page;
  const metadata = toMetadata(page);
  const unit_amount = toMinorUnits(page.amount, currency);
  const product_data = { name: toDescription(page) };
  return {
    mode: 'payment',
    customer: page.provider_customer_id,
    line_items: [{ quantity: 1, price_data: { currency, unit_amount, product_data } }],
    payment_intent_data: {
      description: toDescription(page),
      metadata,
      ...(page.saves_payment_method ? { setup_future_usage: 'off_session' } : {}),
    },
    success_url: success_url ?? DEFAULT_RETURN_URL,
    ...(cancel_url === null ? {} : { cancel_url }),
    // Prevents Stripe from offering another currency.
    adaptive_pricing: { enabled: false },
    metadata,
  };
}

function toDescription({ invoice_number, invoice_id }: RequestedPayment): string {
  return `Invoice ${invoice_number ?? invoice_id}`;
}

function toMetadata({ key, payment_id, invoice_id }: RequestedPayment): Record<string, string> {
  return { farthing_key: key, farthing_payment_id: payment_id, farthing_invoice_id: invoice_id };
}
