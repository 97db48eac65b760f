/**
 * Payment provider that moves no money: the id of the payment method decides the outcome, like test cards of other
 * providers (docs/rules/payments.md, "The sandbox"). It stores its charges, so it recognizes a repeated key and late
 * payments.
 */
import { createHmac } from 'node:crypto';
import { Webhook, WebhookVerificationError } from 'standardwebhooks';
import { z } from 'zod';
import { FarthingError, invalid, notFound, unavailable } from '../../core/foundation/error.ts';
import { DAY_MS } from '../../core/foundation/time/durations.ts';
import type {
  PaymentOutcome,
  PaymentProvider,
  PaymentRequest,
  PaymentScope,
  ProviderEvent,
  ProviderNotice,
  SimulatedCharge,
  SimulatedChargeBook,
} from '../payment-provider.ts';

const LATE_MS = 3 * DAY_MS;

type Behaviour = { readonly error: string } | { readonly late: 'succeeded' | 'failed' } | 'pays' | 'acts' | 'no answer';

const BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
  pm_sandbox_card: 'pays',
  pm_sandbox_bank: 'pays',
  pm_sandbox_declined: { error: 'card_declined: the bank has declined the charge' },
  pm_sandbox_insufficient_funds: { error: 'insufficient_funds: there is not enough money on the account' },
  pm_sandbox_expired: { error: 'expired_card: the card has expired' },
  pm_sandbox_requires_action: 'acts',
  pm_sandbox_pays_late: { late: 'succeeded' },
  pm_sandbox_fails_late: { late: 'failed' },
  pm_sandbox_no_answer: 'no answer',
};

const NOT_ACTED = 'authentication_required: the customer has not confirmed the charge';
const NOT_PAID = 'expired: nobody has paid while the page was open';
const CANCELLED = 'cancelled: it was taken back before it was paid';

const SandboxEvent = z.object({
  type: z.enum(['payment.succeeded', 'payment.failed']),
  data: z.union([
    z.object({ gateway_payment_id: z.string() }),
    z.object({ gatewayPaymentId: z.string() }).transform((data) => ({ gateway_payment_id: data.gatewayPaymentId })),
  ]),
});

export class Sandbox implements PaymentProvider {
  readonly #book: SimulatedChargeBook;

  constructor(book: SimulatedChargeBook) {
    this.#book = book;
  }

  async charge(place: PaymentScope, input: Parameters<PaymentProvider['charge']>[1]): Promise<PaymentOutcome> {
    const { payment_method_id, now } = input;
    const behaviour = BEHAVIOURS[payment_method_id] ?? { error: 'no_such_payment_method: nothing can be charged' };
    const { charge, is_new } = await this.#book.enter(place, {
      ...toEntry(input),
      payment_method_id,
      kind: 'charge',
      ...startCharge(behaviour, now),
    });
    if (is_new && behaviour === 'no answer') throw unavailable('the payment provider');
    return toOutcome(charge, now);
  }

  async openLink(place: PaymentScope, input: PaymentRequest): Promise<PaymentOutcome> {
    const open = { charge_status: 'open', error: NOT_PAID, payment_url: buildPageUrl(input.key) } as const;
    const until = { ends_at: new Date(input.now.getTime() + DAY_MS), ends_as: 'failed' } as const;
    const entry = { ...toEntry(input), kind: 'link', payment_method_id: '', ...open, ...until } as const;
    const { charge } = await this.#book.enter(place, entry);
    return toOutcome(charge, input.now);
  }

  async findOutcome(place: PaymentScope, { key, now }: PaymentRequest): Promise<PaymentOutcome | null> {
    const charge = await this.#book.find(place, { key });
    if (charge === null) return null;
    const isOver = charge.charge_status === 'open' && charge.ends_at !== null && charge.ends_at <= now;
    if (!isOver) return toOutcome(charge, now);
    const error = charge.ends_as === 'failed' ? charge.error : null;
    await this.#book.end(place, charge.id, { charge_status: charge.ends_as!, error });
    return toOutcome((await this.#book.find(place, { key }))!, now);
  }

  async cancel(place: PaymentScope, id: string): Promise<void> {
    await this.#book.end(place, id, { charge_status: 'cancelled', error: CANCELLED });
  }

  async refund(place: PaymentScope, { key, gateway_payment_id: id, amount }: Parameters<PaymentProvider['refund']>[1]) {
    const isDone = await this.#book.refund(place, { id, key, amount });
    if (!isDone) return { outcome: 'failed', error: 'there is not so much left to give back' } as const;
    return { outcome: 'succeeded', gateway_refund_id: `refund_of_${key}` } as const;
  }

  /**
   * Parses a notification and applies it: as no customer or bank exists, the notification itself completes or fails the
   * charge.
   */
  async receive(place: PaymentScope, notice: ProviderNotice): Promise<ProviderEvent> {
    const parsed = SandboxEvent.safeParse(verifyNotice(place, notice));
    if (!parsed.success)
      throw invalid('type', 'is no event of the sandbox: payment.succeeded or payment.failed, with data');
    const { type, data } = parsed.data;
    await this.simulate(place, data.gateway_payment_id, type === 'payment.succeeded' ? 'succeeded' : 'failed');
    return data;
  }

  async simulate(place: PaymentScope, id: string, outcome: 'succeeded' | 'failed'): Promise<void> {
    if ((await this.#book.find(place, { id })) === null) throw notFound('charge of the sandbox', id);
    const error = outcome === 'failed' ? 'card_declined: the bank has declined the charge' : null;
    await this.#book.end(place, id, { charge_status: outcome, error });
  }
}

function toEntry({ key, amount, currency, now }: PaymentRequest) {
  return { key, amount, currency, now };
}

/**
 * Computes the secret of one environment, whose holder can sign only for that environment. Standard Webhooks requires
 * base64.
 */
function computeSecret(secret: string, { tenant_id, environment_id }: PaymentScope): string {
  return createHmac('sha256', secret).update(`${tenant_id}/${environment_id}`).digest('base64');
}

function verifyNotice(place: PaymentScope, { headers, body, secret }: ProviderNotice): unknown {
  if (secret === null)
    throw buildSignatureError('this installation has no PAYMENT_SANDBOX_SECRET, so nothing is believed');
  try {
    return new Webhook(computeSecret(secret, place)).verify(body, headers as Record<string, string>);
  } catch (error) {
    if (error instanceof WebhookVerificationError) throw buildSignatureError(error.message);
    throw invalid('body', 'must be JSON');
  }
}

function buildSignatureError(why: string): FarthingError {
  return new FarthingError('permission_denied', `the signature is not valid: ${why}`, { http_status_code: 401 });
}

function startCharge(behaviour: Behaviour, now: Date) {
  const ended = { payment_url: null, ends_at: null, ends_as: null };
  const after = (ms: number) => new Date(now.getTime() + ms);
  if (behaviour === 'acts') {
    const payment_url = 'https://sandbox.example/confirm';
    return { charge_status: 'open', error: NOT_ACTED, payment_url, ends_at: after(DAY_MS), ends_as: 'failed' } as const;
  }
  if (behaviour === 'pays' || behaviour === 'no answer')
    return { charge_status: 'succeeded', error: null, ...ended } as const;
  if ('error' in behaviour) return { charge_status: 'failed', error: behaviour.error, ...ended } as const;
  const error = behaviour.late === 'failed' ? 'returned: the bank has returned the debit' : null;
  return { charge_status: 'open', error, payment_url: null, ends_at: after(LATE_MS), ends_as: behaviour.late } as const;
}

function buildPageUrl(key: string): string {
  return `https://sandbox.example/pay/${encodeURIComponent(key)}`;
}

function toOutcome(charge: SimulatedCharge, now: Date): PaymentOutcome {
  const gateway_payment_id = charge.id;
  if (charge.charge_status === 'succeeded') return { outcome: 'succeeded', gateway_payment_id };
  if (charge.charge_status !== 'open')
    return { outcome: 'failed', gateway_payment_id, error: charge.error ?? 'declined' };
  const check_at = charge.ends_at && charge.ends_at > now ? charge.ends_at : null;
  return { outcome: 'processing', gateway_payment_id, url: charge.payment_url, check_at };
}
