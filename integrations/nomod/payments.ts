/**
 * Payments at Nomod. A page is a link that can be paid once; its note has a digest of our key. The payment of a link is a charge. Nomod
 * charges no saved cards on request.
 */
import { Decimal } from '../../core/foundation/decimal.ts';
import { MINUTE_MS } from '../../core/foundation/time/durations.ts';
import type { AccountPaymentPage, AccountPayments, AccountRefund } from '../account-payments.ts';
import { JsonNumber } from '../exact-json.ts';
import type { PaymentOutcome, RefundOutcome } from '../payment-provider.ts';
import { isRefused, ProviderError } from '../provider-error.ts';
import { fromNomodAmount, toNomodAmount } from './amounts.ts';
import { describeCurrencyRefusal, type NomodClient } from './client.ts';
import type { NomodCharge, NomodLink } from './records.ts';
import { isLinkOpen, isPaid, readRefunded, toChargeOutcome } from './states.ts';
import { hasNoteId, toDigest, toTitle } from './texts.ts';

/** Maximum number of links that a search reads. */
const LISTED_MAX = 500;
/** Tolerance for a difference between the clocks of the two services. */
const CLOCK_SLACK_MS = MINUTE_MS;

type NomodPaymentQuery = Parameters<AccountPayments['findOutcome']>[0];

export class NomodPayments implements AccountPayments {
  readonly #client: NomodClient;

  constructor(client: NomodClient) {
    this.#client = client;
  }

  async openPage(page: AccountPaymentPage): Promise<PaymentOutcome> {
    const { currency, amount } = page;
    const body = toLink(page);
    const link = (await this.#findUsable(page)) ?? (await this.#createAlone(page, body));
    if (!new Decimal(link.amount).eq(amount) || link.currency.toLowerCase() !== currency) {
      await this.#disable(link.id);
      const found = `${fromNomodAmount(link.amount)} ${link.currency.toLowerCase()}`;
      throw new ProviderError('person', `${amount} ${currency} is requested, but the page of Nomod asks for ${found}`);
    }
    return await this.#readLink(link, page);
  }

  /** Creates the link. If a concurrent request also created one, this request disables its own and is repeated, so that one remains. */
  async #createAlone(page: AccountPaymentPage, body: ReturnType<typeof toLink>): Promise<NomodLink> {
    const created = await this.#createLink(body, page.currency);
    const usable = await this.#listUsable(page);
    if (usable.every(({ id }) => id === created.id)) return created;
    await this.#disable(created.id);
    throw new ProviderError('wait', `${page.payment_id} was sent to Nomod twice at once: one attempt is repeated`);
  }

  async #createLink(body: ReturnType<typeof toLink>, currency: string): Promise<NomodLink> {
    try {
      return await this.#client.create('links', body);
    } catch (error) {
      throw describeCurrencyRefusal(error, currency);
    }
  }

  /** Finds the link of an earlier request. Further open ones, which interrupted concurrent requests have left, are disabled. */
  async #findUsable(page: AccountPaymentPage): Promise<NomodLink | null> {
    const [found = null, ...others] = await this.#listUsable(page);
    for (const other of others) if (isLinkOpen(other)) await this.#disable(other.id);
    return found;
  }

  /** Lists the links of the key that are paid or can be paid, paid ones first. The search may find others, too; the digest in the note decides. */
  async #listUsable({ key, invoice_id, invoice_number }: NomodPaymentQuery): Promise<NomodLink[]> {
    const digest = toDigest(key);
    const [open, paid]: [NomodLink[], NomodLink[]] = [[], []];
    let read = 0;
    for await (const link of this.#client.list('links', { search: toTitle(invoice_number ?? invoice_id) })) {
      if (hasNoteId(link.note, digest)) {
        if ((await this.#findPaid(link)) !== null) paid.push(link);
        else if (isLinkOpen(link)) open.push(link);
      }
      if (++read >= LISTED_MAX) break;
    }
    return [...paid, ...open];
  }

  async #findPaid({ id }: NomodLink): Promise<NomodCharge | null> {
    for await (const charge of this.#client.list('charges', { link_id: id })) if (isPaid(charge)) return charge;
    return null;
  }

  /** Reads the outcome of a link. It closes itself once it is paid, so its charges decide first. */
  async #readLink(link: NomodLink, query: NomodPaymentQuery): Promise<PaymentOutcome> {
    const { id, url } = link;
    const paid = await this.#findPaid(link);
    if (paid !== null) return toOutcome(paid, query);
    if (isLinkOpen(link)) return { outcome: 'processing', gateway_payment_id: id, url, check_at: null };
    return { outcome: 'failed', gateway_payment_id: id, error: 'disabled: the page was closed before it was paid' };
  }

  async findOutcome(payment: NomodPaymentQuery): Promise<PaymentOutcome | null> {
    const { gateway_payment_id: id } = payment;
    const stored = id === null ? null : await this.#findStored(id, payment);
    if (stored !== null) return stored;
    const [link] = await this.#listUsable(payment);
    if (link !== undefined) return await this.#readLink(link, payment);
    if (id === null) return null;
    throw new ProviderError('person', `Nomod no longer has the payment ${id}`, { is_missing: true });
  }

  /** Reads the page or charge with the stored id. The id of a page is that of its link until it is paid. */
  async #findStored(id: string, query: NomodPaymentQuery): Promise<PaymentOutcome | null> {
    const link = query.is_page ? await this.#client.find('links', id) : null;
    if (link !== null) return await this.#readLink(link, query);
    const charge = await this.#client.find('charges', id);
    return charge === null ? null : toOutcome(charge, query);
  }

  async cancel(gateway_payment_id: string): Promise<void> {
    const link = await this.#client.find('links', gateway_payment_id);
    if (link !== null && isLinkOpen(link)) await this.#disable(link.id);
  }

  /** Disables the link; no effect if it is disabled already. */
  async #disable(id: string): Promise<void> {
    try {
      await this.#client.close('links', id);
    } catch (error) {
      const current = isRefused(error) ? await this.#client.find('links', id) : null;
      if (current === null || isLinkOpen(current)) throw error;
    }
  }

  async refund(refund: AccountRefund): Promise<RefundOutcome> {
    const { key, amount, currency } = refund;
    const charge = await this.#loadPaid(refund.gateway_payment_id);
    const made = { outcome: 'succeeded', gateway_refund_id: `${charge.id}:${toDigest(key)}` } as const;
    if (hasRefunded(charge, refund)) return made;
    try {
      await this.#client.refund(charge.id, toNomodAmount(amount, currency));
      return made;
    } catch (error) {
      if (!isRefused(error)) throw error;
      return { outcome: 'failed', error: error.message };
    }
  }

  /** Loads the charge to refund. A payment that was requested as a page may still be known by the id of its link. */
  async #loadPaid(gateway_payment_id: string): Promise<NomodCharge> {
    const charge = await this.#client.find('charges', gateway_payment_id);
    if (charge !== null) return charge;
    const link = await this.#client.find('links', gateway_payment_id);
    const paid = link === null ? null : await this.#findPaid(link);
    if (paid !== null) return paid;
    throw new ProviderError('person', `nobody has paid ${gateway_payment_id} at Nomod`);
  }
}

/**
 * Whether an earlier request made the refund: more is refunded than is recorded here, and a refund of this amount is younger than the
 * request. Nomod has neither keys nor ids of refunds.
 */
function hasRefunded(charge: NomodCharge, { amount, requested_at, refunded_before = '0' }: AccountRefund): boolean {
  const unrecorded = new Decimal(readRefunded(charge)).minus(refunded_before);
  const since_ms = requested_at.getTime() - CLOCK_SLACK_MS;
  const isMade = (one: { created: string; amount: string }) =>
    new Decimal(one.amount).eq(amount) && Date.parse(one.created) >= since_ms;
  return unrecorded.gte(amount) && (charge.refunds ?? []).some(isMade);
}

function toLink({ key, amount, currency, invoice_id, invoice_number, success_url, cancel_url }: AccountPaymentPage) {
  const title = toTitle(invoice_number ?? invoice_id);
  return {
    ...{ currency: currency.toUpperCase(), title, note: `${title} (${toDigest(key)})` },
    items: [{ name: title, amount: toNomodAmount(amount, currency), quantity: new JsonNumber('1') }],
    ...{ allow_tip: false, allow_service_fee: false, payment_expiry_limit: new JsonNumber('1') },
    success_url: success_url ?? undefined,
    failure_url: cancel_url ?? undefined,
  };
}

function toOutcome(charge: NomodCharge, query: NomodPaymentQuery): PaymentOutcome {
  const outcome = toChargeOutcome(charge);
  return outcome.outcome === 'succeeded' ? { ...outcome, ...toReceivedAmount(charge, query) } : outcome;
}

/** Reads the received amount. It may differ from the requested one: a person may edit the page, or store another charge here. */
function toReceivedAmount(charge: NomodCharge, { amount, currency }: NomodPaymentQuery) {
  const paid_currency = charge.currency.toLowerCase();
  const received = fromNomodAmount(charge.total);
  if (paid_currency === currency) return new Decimal(received).eq(amount) ? {} : { received_amount: received };
  throw new ProviderError(
    'wait',
    `${amount} ${currency} was requested, but Nomod received ${received} ${paid_currency} (${charge.id})`,
    { is_of_record: true },
  );
}
