/**
 * Payment intents, Checkout sessions, setup intents, payment methods and refunds of Stripe's fake (docs.stripe.com/api/payment_intents,
 * /checkout/sessions, /setup_intents, /payment_methods, /refunds, /invoices/attach_payment; docs.stripe.com/payments/paymentintents/lifecycle,
 * docs.stripe.com/refunds; docs.stripe.com/testing for the names of the payment methods). `pm_card_declinedWithoutCode` is ours.
 */
import type { Grammar, Parameters } from './stripe-fake-parameters.ts';
import { type StripeBook, type StripeRecord, seconds } from './stripe-fake-records.ts';
import { refuseMissing, StripeRefusal } from './stripe-fake-refusal.ts';

export type IntentRecord = StripeRecord & {
  status: string;
  amount: number;
  amount_received: number;
  currency: string;
  customer: string;
  payment_method: string | null;
  last_payment_error: Record<string, unknown> | null;
  next_action: { type: string; redirect_to_url: { url: string; return_url: unknown } } | null;
  cancellation_reason: string | null;
};
export type SessionRecord = StripeRecord & {
  mode: 'payment' | 'setup';
  status: 'open' | 'complete' | 'expired';
  payment_intent: string | null;
  setup_intent: string | null;
  url: string | null;
  /** Parameters of the payment intent that the session will create; they are not part of an answer. */
  terms: Parameters;
};
type RefundRecord = StripeRecord & { payment_intent: string; amount: number; status: string };

type Behaviour = {
  readonly error?: Record<string, string>;
  readonly acts?: true;
  readonly debit?: true;
  /** Next action of a payment that the customer makes later, for example in a shop. */
  readonly next_action?: Record<string, unknown>;
};
const DECLINED = { type: 'card_error', code: 'card_declined', message: 'Your card was declined.' };
const METHODS: Readonly<Record<string, Behaviour>> = {
  pm_card_visa: {},
  pm_card_chargeCustomerFail: { error: { ...DECLINED, decline_code: 'generic_decline' } },
  pm_card_declinedWithoutCode: { error: { type: 'card_error', message: 'Your bank said no.' } },
  pm_card_authenticationRequired: { acts: true },
  pm_usBankAccount_success: { debit: true },
  pm_oxxo: {
    next_action: {
      type: 'oxxo_display_details',
      oxxo_display_details: { number: '1', hosted_voucher_url: 'https://payments.stripe.example/voucher/1' },
    },
  },
  pm_wechat_pay: {
    next_action: { type: 'wechat_pay_display_qr_code', wechat_pay_display_qr_code: { data: 'weixin://1' } },
  },
};
/**
 * Smallest charge in US cents (docs.stripe.com/currencies, "Minimum and maximum charge amounts"). The fake has no minimum for other
 * currencies.
 */
const USD_MIN = 50;

const INTENT: Grammar = {
  ...{ 'amount!': 'integer', 'currency!': 'text', customer: 'text', payment_method: 'text', confirm: 'flag' },
  ...{ off_session: 'flag', return_url: 'text', description: 'text', metadata: 'map' },
};
const RANGE: Grammar = { gt: 'integer', gte: 'integer', lt: 'integer', lte: 'integer' };
const PAGES: Grammar = { limit: 'integer', starting_after: 'text', ending_before: 'text', created: RANGE };
const SEARCH: Grammar = { 'query!': 'text', limit: 'integer', page: 'text' };
const SESSION: Grammar = {
  ...{ mode: ['payment', 'setup'], customer: 'text', success_url: 'text', cancel_url: 'text', metadata: 'map' },
  line_items: {
    list_of: {
      quantity: 'integer',
      price_data: { 'currency!': 'text', unit_amount: 'integer', product_data: { 'name!': 'text' } },
    },
  },
  payment_intent_data: { description: 'text', metadata: 'map', setup_future_usage: ['off_session', 'on_session'] },
  setup_intent_data: { metadata: 'map' },
  allowed_payment_method_types: { list_of: 'text' },
  adaptive_pricing: { enabled: 'flag' },
};
const SETUP: Grammar = {
  ...{ customer: 'text', usage: ['off_session', 'on_session'], metadata: 'map' },
  allowed_payment_method_types: { list_of: 'text' },
};
const REFUND: Grammar = { payment_intent: 'text', charge: 'text', amount: 'integer', metadata: 'map' };

type Call = { readonly id: string; readonly parameters: Parameters; readonly book: StripeBook };
export type PaymentOperation<Listing> = {
  readonly method: 'GET' | 'POST';
  readonly path: RegExp;
  readonly grammar: Grammar;
  run(call: Listing & Call): unknown;
};

/** Lists the operations. The table of routes passes its functions for pages of lists and for searches. */
export function listPaymentOperations<Listing>({
  showPage,
  search,
}: {
  showPage(call: Listing & Call, records: readonly StripeRecord[], filters: readonly string[]): unknown;
  search(call: Listing & Call, records: readonly StripeRecord[]): unknown;
}): readonly PaymentOperation<Listing>[] {
  type Run = PaymentOperation<Listing>['run'];
  const post = (path: RegExp, grammar: Grammar, run: Run) => ({ method: 'POST' as const, path, grammar, run });
  const get = (path: RegExp, grammar: Grammar, run: Run) => ({ method: 'GET' as const, path, grammar, run });
  const list = (path: RegExp, object: string, filters: readonly string[]) =>
    get(path, { ...PAGES, ...Object.fromEntries(filters.map((name) => [name, 'text' as const])) }, (call) =>
      showPage(call, call.book.list(object), filters),
    );
  return [
    post(/^payment_intents$/, INTENT, ({ book, parameters }) => createIntent(book, parameters)),
    list(/^payment_intents$/, 'payment_intent', ['customer']),
    get(/^payment_intents\/search$/, SEARCH, (call) => search(call, call.book.list('payment_intent'))),
    post(
      /^payment_intents\/(\w+)\/confirm$/,
      { payment_method: 'text', return_url: 'text', off_session: 'flag' },
      ({ book, id, parameters }) => confirmIntent(book, book.find('payment_intent', id), parameters),
    ),
    post(/^payment_intents\/(\w+)\/cancel$/, {}, ({ book, id }) => cancelIntent(book, book.find('payment_intent', id))),
    post(/^checkout\/sessions$/, SESSION, ({ book, parameters }) => createSession(book, parameters)),
    list(/^checkout\/sessions$/, 'checkout.session', ['customer', 'payment_intent']),
    get(/^checkout\/sessions\/(\w+)$/, {}, ({ book, id }) => book.find('checkout.session', id)),
    post(/^checkout\/sessions\/(\w+)\/expire$/, {}, ({ book, id }) => expireSession(book, id)),
    post(/^setup_intents$/, SETUP, ({ book, parameters }) => createSetup(book, parameters)),
    get(/^setup_intents\/(\w+)$/, {}, ({ book, id }) => book.find('setup_intent', id)),
    get(
      /^customers\/(\w+)\/payment_methods$/,
      { limit: 'integer', starting_after: 'text', ending_before: 'text', type: 'text' },
      (call) => {
        const { id } = call.book.find('customer', call.id);
        const own = call.book.list('payment_method').filter(({ customer }) => customer === id);
        return showPage(call, own, ['type']);
      },
    ),
    get(/^payment_methods\/(\w+)$/, {}, ({ book, id }) => book.find('payment_method', id)),
    post(/^refunds$/, REFUND, ({ book, parameters }) => createRefund(book, parameters)),
    list(/^refunds$/, 'refund', ['payment_intent', 'charge']),
    get(/^refunds\/(\w+)$/, {}, ({ book, id }) => book.find('refund', id)),
  ];
}

function createIntent(book: StripeBook, parameters: Parameters): IntentRecord {
  const { amount, currency, customer, description = null, metadata = {} } = parameters;
  if (currency === 'usd' && Number(amount) < USD_MIN)
    throw new StripeRefusal(400, {
      code: 'amount_too_small',
      message: 'Amount must be at least $0.50 usd',
      param: 'amount',
    });
  if (book.records.get(String(customer))?.object !== 'customer')
    throw refuseMissing('customer', String(customer), 400, 'customer');
  findBehaviour(book, String(parameters['payment_method']));
  const intent = addIntent(book, { amount, currency, customer, description, metadata: { ...(metadata as object) } });
  return parameters['confirm'] === true ? confirmIntent(book, intent, parameters) : intent;
}

function addIntent(book: StripeBook, fields: Record<string, unknown>): IntentRecord {
  return book.add('pi', 'payment_intent', {
    ...{ status: 'requires_payment_method', amount_received: 0, payment_method: null, last_payment_error: null },
    ...{ next_action: null, cancellation_reason: null, setup_future_usage: null, ...fields },
  }) as unknown as IntentRecord;
}

function findBehaviour(book: StripeBook, method: string): Behaviour {
  const name = String(book.records.get(method)?.['name'] ?? method);
  const behaviour = METHODS[name];
  if (behaviour === undefined) throw refuseMissing('PaymentMethod', method, 400, 'payment_method');
  return behaviour;
}

function confirmIntent(book: StripeBook, intent: IntentRecord, parameters: Parameters): IntentRecord {
  if (!['requires_payment_method', 'requires_confirmation'].includes(intent.status))
    throw new StripeRefusal(400, {
      code: 'payment_intent_unexpected_state',
      message: `You cannot confirm this PaymentIntent because it has a status of ${intent.status}.`,
    });
  const method = String(parameters['payment_method']);
  const { error, acts, debit, next_action } = findBehaviour(book, method);
  Object.assign(intent, { payment_method: method, last_payment_error: null });
  if (error) throw declineIntent(book, intent, error);
  if (acts && parameters['off_session'] === true)
    throw declineIntent(book, intent, {
      ...{ type: 'card_error', code: 'authentication_required', decline_code: 'authentication_required' },
      message: 'Your card was declined. This transaction requires authentication.',
    });
  if (acts) {
    const url = `https://hooks.stripe.example/redirect/${intent.id}`;
    const redirect_to_url = { url, return_url: parameters['return_url'] };
    Object.assign(intent, { status: 'requires_action', next_action: { type: 'redirect_to_url', redirect_to_url } });
    book.announce('payment_intent.requires_action', intent);
    return intent;
  }
  if (next_action) {
    Object.assign(intent, { status: 'requires_action', next_action });
    book.announce('payment_intent.requires_action', intent);
    return intent;
  }
  if (debit) {
    intent.status = 'processing';
    book.announce('payment_intent.processing', intent);
    return intent;
  }
  return succeed(book, intent);
}

function succeed(book: StripeBook, intent: IntentRecord): IntentRecord {
  Object.assign(intent, { status: 'succeeded', amount_received: intent.amount, next_action: null });
  book.announce('payment_intent.succeeded', intent);
  return intent;
}

function declineIntent(book: StripeBook, intent: IntentRecord, error: Record<string, string>): StripeRefusal {
  Object.assign(intent, { status: 'requires_payment_method', last_payment_error: error, next_action: null });
  book.announce('payment_intent.payment_failed', intent);
  const { message = '', ...fault } = error;
  return new StripeRefusal(402, { ...fault, message, payment_intent: structuredClone(intent) });
}

function cancelIntent(book: StripeBook, intent: IntentRecord): IntentRecord {
  if (['succeeded', 'canceled', 'processing'].includes(intent.status))
    throw new StripeRefusal(400, {
      code: 'payment_intent_unexpected_state',
      message: `You cannot cancel this PaymentIntent because it has a status of ${intent.status}.`,
    });
  if (book.list<SessionRecord>('checkout.session').some(({ payment_intent }) => payment_intent === intent.id))
    throw new StripeRefusal(400, { message: 'You cannot cancel this PaymentIntent because it is used by Checkout.' });
  Object.assign(intent, { status: 'canceled', next_action: null });
  book.announce('payment_intent.canceled', intent);
  return intent;
}

/** Confirms a charge as the customer does, or fails it. */
export function actOnIntent(book: StripeBook, id: string, outcome: 'succeeded' | 'failed'): void {
  const intent = book.find<IntentRecord>('payment_intent', id);
  if (outcome === 'succeeded') return void succeed(book, intent);
  const type =
    intent.status === 'processing' ? 'payment_method_customer_decline' : 'payment_intent_authentication_failure';
  declineIntent(book, intent, { type: 'card_error', code: type, message: 'The payment failed.' });
}

function createSession(book: StripeBook, parameters: Parameters): SessionRecord {
  const { mode = 'payment', customer = '', metadata = {}, success_url } = parameters;
  if (success_url === undefined)
    throw new StripeRefusal(400, { code: 'parameter_missing', message: 'Missing success_url', param: 'success_url' });
  const items = (parameters['line_items'] ?? []) as { quantity: number; price_data: { unit_amount: number } }[];
  const amount_total = items.reduce((sum, one) => sum + one.quantity * one.price_data.unit_amount, 0);
  const setup =
    mode === 'setup' ? createSetup(book, { customer, ...(parameters['setup_intent_data'] as object) }) : null;
  const session = book.add('cs_test', 'checkout.session', {
    ...{
      mode,
      customer,
      amount_total,
      status: 'open',
      payment_status: 'unpaid',
      metadata: { ...(metadata as object) },
    },
    ...{ payment_intent: null, setup_intent: setup?.id ?? null, terms: parameters },
    expires_at: seconds() + 86_400,
  }) as unknown as SessionRecord;
  session.url = `https://checkout.stripe.example/c/${session.id}`;
  return session;
}

function expireSession(book: StripeBook, id: string): SessionRecord {
  const session = book.find<SessionRecord>('checkout.session', id);
  if (session.status !== 'open')
    throw new StripeRefusal(400, { message: `Only Checkout Sessions with a status in ["open"] can be expired.` });
  Object.assign(session, { status: 'expired', url: null });
  book.announce('checkout.session.expired', session);
  return session;
}

/** Completes a page as the customer does: pays, or enters a card on the page of a setup. */
export function completeSession(book: StripeBook, id: string, name: string): IntentRecord | null {
  const session = book.find<SessionRecord>('checkout.session', id);
  if (session.status !== 'open') throw new Error(`the session ${id} is ${session.status}`);
  Object.assign(session, { status: 'complete', url: null });
  if (session.setup_intent !== null) {
    completeSetup(book, session.setup_intent, name);
    book.announce('checkout.session.completed', session);
    return null;
  }
  const data = (session.terms['payment_intent_data'] ?? {}) as Record<string, unknown>;
  const [item] = session.terms['line_items'] as { price_data: { currency: string } }[];
  const intent = addIntent(book, {
    ...{ amount: session['amount_total'], currency: item!.price_data.currency, customer: session['customer'], ...data },
  });
  session.payment_intent = intent.id;
  const isSaved = data['setup_future_usage'] === 'off_session';
  const method = addMethod(book, name, isSaved ? String(session['customer']) : null);
  confirmIntent(book, intent, { payment_method: method.id });
  session['payment_status'] = intent.status === 'succeeded' ? 'paid' : 'unpaid';
  book.announce('checkout.session.completed', session);
  return intent;
}

function createSetup(book: StripeBook, { customer = '', metadata = {} }: Parameters): StripeRecord {
  const setup = book.add('seti', 'setup_intent', {
    ...{ customer, status: 'requires_payment_method', payment_method: null, metadata: { ...(metadata as object) } },
  }) as StripeRecord;
  setup['client_secret'] = `${setup.id}_secret_fake`;
  return setup;
}

export function completeSetup(book: StripeBook, id: string, name: string): string {
  const setup = book.find('setup_intent', id);
  const method = addMethod(book, name, String(setup['customer']));
  Object.assign(setup, { status: 'succeeded', payment_method: method.id });
  book.announce('setup_intent.succeeded', setup);
  return method.id;
}

/** Saves a payment method of a customer, like a person in Stripe's dashboard. */
export function addMethod(book: StripeBook, name: string, customer: string | null): StripeRecord {
  if (METHODS[name]?.debit) return book.add('pm', 'payment_method', { name, type: 'us_bank_account', customer });
  const card = { brand: 'visa', last4: '4242', exp_month: 12, exp_year: 2034 };
  return book.add('pm', 'payment_method', { name, type: 'card', card, customer });
}

export function detachMethod(book: StripeBook, id: string): void {
  const method = book.find('payment_method', id);
  method['customer'] = null;
  book.announce('payment_method.detached', method);
}

/** Creates a refund. Refunds of bank debits stay pending, because they take days. */
function createRefund(book: StripeBook, parameters: Parameters): RefundRecord {
  const { amount, metadata = {} } = parameters;
  const charge = parameters['charge'] === undefined ? null : String(parameters['charge']);
  const payment_intent = charge === null ? String(parameters['payment_intent']) : `pi_${charge.slice(3)}`;
  const intent = book.find<IntentRecord>('payment_intent', payment_intent);
  const earlier = listRefunds(book, intent.id).filter(({ status }) => status !== 'failed');
  const left = intent.amount_received - earlier.reduce((sum, one) => sum + one.amount, 0);
  if (left <= 0)
    throw new StripeRefusal(400, { code: 'charge_already_refunded', message: 'Charge has already been refunded.' });
  if (Number(amount) > left)
    throw new StripeRefusal(400, {
      message: 'Refund amount is greater than unrefunded amount on charge',
      param: 'amount',
    });
  const isSlow = Boolean(intent.payment_method) && findBehaviour(book, String(intent.payment_method)).debit === true;
  const refund = book.add('re', 'refund', {
    ...{ payment_intent: intent.id, charge: `ch_${intent.id.slice(3)}` },
    ...{ amount: Number(amount), currency: intent.currency, failure_reason: null },
    ...{ status: isSlow ? 'pending' : 'succeeded', metadata: { ...(metadata as Record<string, string>) } },
  });
  book.announce('refund.created', refund);
  return refund;
}

export function listRefunds(book: StripeBook, payment_intent: string): RefundRecord[] {
  return book.list<RefundRecord>('refund').filter((one) => one.payment_intent === payment_intent);
}

export function endRefund(book: StripeBook, id: string, status: 'succeeded' | 'failed'): void {
  const refund = book.find('refund', id);
  Object.assign(refund, { status, failure_reason: status === 'failed' ? 'lost_or_stolen_card' : null });
  book.announce(status === 'failed' ? 'refund.failed' : 'refund.updated', refund);
}
