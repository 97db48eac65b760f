/**
 * A law of credits over the interface (docs/rules/credit-notes.md, "As the line was paid"): after every step of a random history of purchases
 * of credits, payments, notes, refunds, changes, voids and a cancellation, what is owed, plus what was paid, less the credits that pay
 * after tax, is what the invoices charge less what was given back; and the bought credits that are gone are those that paid lines.
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { billThresholds } from '../../actions/lifecycle/billing/bill-thresholds.ts';
import { auditCredits } from '../../actions/operations/audit/credits.ts';
import { auditInvoices } from '../../actions/operations/audit/invoices.ts';
import { Decimal, sumDecimals, ZERO } from '../../core/foundation/decimal.ts';
import { minorUnits, roundMoney } from '../../core/foundation/money.ts';
import type { AnswerTo, ErrorAnswer } from '../support/answers.ts';
import { samples } from '../support/samples.ts';
import { fixed, startWorld, usage, type World } from '../support/world.ts';

const BEGIN = Date.UTC(2026, 0, 1);
const DAY_MS = 86_400_000;

const nth = fc.nat(7);
const tenths = fc.integer({ min: 1, max: 10 });
const step = fc.oneof(
  fc.record({ does: fc.constant('buy' as const), tenths }),
  fc.record({ does: fc.constant('pay' as const), nth, tenths: fc.constantFrom(3, 10, 10) }),
  fc.record({ does: fc.constant('note' as const), nth, line: fc.nat(3), tenths }),
  fc.record({ does: fc.constant('voidNote' as const), nth }),
  fc.record({ does: fc.constant('refund' as const), nth, tenths }),
  fc.record({ does: fc.constant('quantity' as const), quantity: fc.integer({ min: 1, max: 4 }) }),
  fc.record({ does: fc.constant('plan' as const) }),
  fc.record({ does: fc.constant('use' as const), units: fc.integer({ min: 1, max: 40 }) }),
  fc.record({ does: fc.constant('unuse' as const), units: fc.integer({ min: 1, max: 40 }) }),
  fc.record({ does: fc.constant('void' as const), nth }),
  fc.record({ does: fc.constant('recalculate' as const), nth }),
  fc.record({ does: fc.constant('oneOff' as const), tenths }),
  fc.record({ does: fc.constant('month' as const) }),
);
const history = fc.record({
  steps: fc.array(fc.record({ step, days: fc.integer({ min: 0, max: 90 }) }), { minLength: 3, maxLength: 14 }),
  currency: fc.constantFrom('usd', 'usd', 'jpy', 'kwd'),
  behavior: fc.constantFrom('exclusive', 'exclusive', 'inclusive'),
  threshold: fc.constantFrom('0', '0', '20'),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

describe('law: what is given back is what was charged', () => {
  let world: World;
  before(async () => {
    world = await startWorld();
    await world.meter('calls');
    const advance = { invoice_cadence: 'ADVANCE' };
    for (const currency of ['usd', 'jpy', 'kwd']) {
      const [one, two, call] = currency === 'jpy' ? ['3137', '5903', '100'] : ['31.37', '59.03', '1'];
      await world.plan(`One ${currency}`, [
        fixed(one, { ...advance, currency, display_name: 'one' }),
        usage('calls', call, { currency, display_name: 'calls' }),
      ]);
      await world.plan(`Two ${currency}`, [
        fixed(two, { ...advance, currency, display_name: 'two' }),
        usage('calls', call, { currency, display_name: 'calls' }),
      ]);
      await world.plan(`Calls ${currency}`, [usage('calls', call, { currency, display_name: 'calls' })]);
    }
    for (const tax_behavior of ['exclusive', 'inclusive'])
      await world.post('/taxes/rates', {
        name: tax_behavior,
        code: tax_behavior,
        percentage_value: '20',
        tax_behavior,
      });
  });
  after(() => world.stop());

  const sum = (values: readonly string[]) => sumDecimals(values.map((value) => new Decimal(value)));
  /** The steps of the history so far, for the message of a failure. */
  const log: string[] = [];

  async function ask<Method extends string, Path extends string>(method: Method, path: Path, body: object = {}) {
    const answer = await world.api.request(method, path, { body });
    log.push(
      `${method} ${path.split('/')[1]}/${path.split('/').slice(3).join('/')} ${JSON.stringify(body).slice(0, 160)} -> ${answer.status} ${answer.status >= 400 ? (answer.body as ErrorAnswer).message : ''}`,
    );
    expect(answer.status, `${method} ${path}: ${answer.text}\n${log.join('\n')}`).to.be.below(500);
    return answer.status < 300 ? (answer.body as AnswerTo<Method, Path>) : null;
  }

  const invoicesOf = async (customer_id: string) => {
    const invoice_status = ['DRAFT', 'FINALIZED', 'SKIPPED', 'VOIDED'];
    const { items } = (await ask('POST', '/invoices/search', { customer_id, invoice_status, limit: 1000 }))!;
    log.pop();
    const all = await Promise.all(items.map(({ id }) => world.get(`/invoices/${id}`)));
    return all.toSorted((a, b) =>
      a.created_at < b.created_at ? -1 : a.created_at > b.created_at ? 1 : a.id < b.id ? -1 : 1,
    );
  };
  const notesOf = async (customer_id: string) => {
    const { items } = await world.get('/creditnotes?limit=1000');
    return items.filter((note) => note.customer_id === customer_id);
  };
  const paymentsOf = async (customer_id: string) => {
    const ids = (await invoicesOf(customer_id)).map(({ id }) => id);
    const all = await Promise.all(ids.map((id) => world.get(`/payments?destination_id=${id}&limit=1000`)));
    return all.flatMap(({ items }) => items);
  };
  async function lots(customer_id: string): Promise<{ before: Decimal; after: Decimal; bought: Decimal }> {
    const wallets = await world.get(`/customers/${customer_id}/wallets`);
    let [before, after, bought] = [ZERO, ZERO, ZERO];
    for (const { id } of wallets) {
      const { items } = await world.get(`/wallets/${id}/transactions?type=credit&limit=1000`);
      for (const one of items) {
        expect(new Decimal(one.credits_available).isNegative()).to.equal(false);
        if (one.transaction_reason === 'FREE_CREDIT_GRANT') bought = bought.plus(one.credit_amount);
        if (one.pays_after_tax) after = after.plus(one.credits_available);
        else before = before.plus(one.credits_available);
      }
    }
    return { before, after, bought };
  }

  async function check(customer_id: string, isLast = false): Promise<void> {
    const invoices = await invoicesOf(customer_id);
    const live = invoices.filter(
      ({ invoice_status, billing_reason }) =>
        invoice_status === 'FINALIZED' || (invoice_status === 'SKIPPED' && billing_reason === 'SUBSCRIPTION_UPDATE'),
    );
    const liveIds = new Set(live.map(({ id }) => id));
    const notes = (await notesOf(customer_id)).filter(
      (note) => note.credit_note_status === 'FINALIZED' && liveIds.has(note.invoice_id),
    );
    const own = notes.filter((note) => !note.change_invoice_id);
    const payments = await paymentsOf(customer_id);
    const money = sum(payments.filter((one) => one.payment_status !== 'VOIDED').map(({ amount }) => amount)).minus(
      sum(payments.map(({ refunded_amount }) => refunded_amount)),
    );
    const lines = live.flatMap(({ line_items }) => line_items);
    const charged = sumDecimals(
      lines.map((line) =>
        new Decimal(line.amount)
          .minus(line.line_item_discount)
          .minus(line.invoice_level_discount)
          .minus(line.prepaid_credits_applied)
          .plus(line.tax_amount),
      ),
    );
    const noted = sumDecimals(
      own.map((note) => new Decimal(note.total_amount).minus(note.total_prepaid_credits_returned)),
    );
    const byNotes = sumDecimals(
      notes.map((note) =>
        note.credit_note_type === 'REFUND'
          ? new Decimal(note.total_amount)
          : new Decimal(note.total_prepaid_credits_returned),
      ),
    );
    const refunded = sum(live.map(({ refunded_amount }) => refunded_amount)).minus(byNotes);
    const over = sum(live.map(({ overpaid_amount }) => overpaid_amount ?? '0'));
    const owed = sum(live.map(({ amount_remaining }) => amount_remaining));
    const { before, after, bought } = await lots(customer_id);
    const said = () =>
      `owed ${owed} money ${money} after ${after} before ${before} bought ${bought} charged ${charged} noted ${noted} refunded ${refunded} over ${over}\n${invoices
        .map(
          (one) =>
            `${one.id.slice(-4)} ${one.billing_reason} ${one.invoice_status} ${one.payment_status} total ${one.total} due ${one.amount_due} paid ${one.amount_paid} rem ${one.amount_remaining} adj ${one.adjustment_amount} ref ${one.refunded_amount} prep ${one.total_prepaid_credits_applied} ret ${one.prepaid_credits_returned}\n${one.line_items
              .map(
                (l) =>
                  `    ${l.display_name} ${l.quantity} = ${l.amount} tax ${l.tax_amount} prep ${l.prepaid_credits_applied}`,
              )
              .join('\n')}`,
        )
        .join('\n')}\n${log.join('\n')}`;
    const isExact = (what: string, one: Decimal, other: Decimal) =>
      expect(one.toFixed(), `${what}: ${said()}`).to.equal(other.toFixed());
    isExact('money', owed.plus(money).minus(after).minus(over), charged.minus(noted).minus(refunded));
    const returned = sum(own.map((note) => note.total_prepaid_credits_returned));
    isExact('bought', bought.minus(before), sum(lines.map((line) => line.prepaid_credits_applied)).minus(returned));
    for (const one of live) {
      isExact('due', new Decimal(one.total).minus(one.adjustment_amount), new Decimal(one.amount_due));
      isExact(
        'remaining',
        Decimal.max(ZERO, new Decimal(one.amount_due).minus(one.amount_paid)),
        new Decimal(one.amount_remaining),
      );
    }
    if (!isLast) return;
    const found: string[] = [];
    await auditInvoices(world.api.services, ({ kind, what }) => void found.push(`${kind} ${what}`));
    await auditCredits(world.api.services, ({ kind, what }) => void found.push(`${kind} ${what}`));
    expect(found, said()).to.deep.equal([]);
  }

  let names = 0;
  it('after every step of random histories', async () => {
    await fc.assert(
      fc.asyncProperty(history, async ({ steps, currency, behavior, threshold }) => {
        log.length = 0;
        const name = `customer ${++names}`;
        world.at(new Date(BEGIN).toISOString());
        await world.customer(name);
        const customer_id = world.id(`customer ${name}`);
        await world.post('/taxes/associations', {
          tax_rate_code: behavior,
          entity_type: 'customer',
          entity_id: customer_id,
          start_date: '2020-01-01T00:00:00Z',
        });
        const isThreshold = threshold !== '0';
        const unit = currency === 'jpy' ? 100 : 1;
        let plan = isThreshold ? 'Calls' : 'One';
        await world.subscribe(name, `${plan} ${currency}`, {
          currency,
          ...(isThreshold ? { auto_invoice_threshold: String(20 * unit) } : {}),
        });
        const wallet = await world.post('/wallets', {
          external_customer_id: name,
          currency,
          config: { allowed_price_types: ['ALL'] },
        });
        const digits = minorUnits(currency);
        const id = world.id(`subscription ${name}`);
        let [now, memo, month] = [BEGIN, 0, 0];
        const events: string[] = [];
        const act = async (one: Step): Promise<void> => {
          const final = async () =>
            (await invoicesOf(customer_id)).filter(({ invoice_status }) => invoice_status === 'FINALIZED');
          if (one.does === 'buy')
            return void (await ask('POST', `/wallets/${wallet.id}/top-up`, {
              credits_to_add: String(one.tenths * 3 * unit),
              transaction_reason: 'FREE_CREDIT_GRANT',
              idempotency_key: `buy ${names} ${++memo}`,
            }));
          if (one.does === 'pay') {
            const open = (await final()).filter(({ amount_remaining }) => new Decimal(amount_remaining).gt(0));
            const invoice = open[one.nth % Math.max(1, open.length)];
            if (!invoice) return;
            const amount = roundMoney(new Decimal(invoice.amount_remaining).times(one.tenths).dividedBy(10), currency);
            if (amount.gt(0))
              await ask('POST', '/payments', {
                destination_type: 'INVOICE',
                destination_id: invoice.id,
                payment_method_type: 'OFFLINE',
                amount: amount.toFixed(),
                currency,
                metadata: { n: String(++memo) },
              });
            return;
          }
          if (one.does === 'note') {
            const all = await final();
            const invoice = all[one.nth % Math.max(1, all.length)];
            const lines = invoice?.line_items.filter(({ amount }) => new Decimal(amount).gt(0)) ?? [];
            const line = lines[one.line % Math.max(1, lines.length)];
            if (!line) return;
            const amount = new Decimal(line.amount)
              .times(one.tenths)
              .dividedBy(10)
              .toDecimalPlaces(digits, Decimal.ROUND_DOWN);
            const note = (a: string) =>
              ask('POST', '/creditnotes', {
                invoice_id: invoice!.id,
                memo: String(++memo),
                reason: 'BILLING_ERROR',
                line_items: [{ invoice_line_item_id: line.id, amount: a }],
              });
            const made = await note(amount.toFixed());
            if (made) return;
            // As much as is left of it.
            const answer = await world.api.request('POST', '/creditnotes', {
              body: {
                invoice_id: invoice!.id,
                memo: String(++memo),
                reason: 'BILLING_ERROR',
                line_items: [{ invoice_line_item_id: line.id, amount: amount.toFixed() }],
              },
            });
            const most = answer.body?.details?.max_allowed as string | undefined;
            if (most && new Decimal(most).gt(0) && new Decimal(most).decimalPlaces() <= digits) await note(most);
            return;
          }
          if (one.does === 'voidNote') {
            const notes = (await notesOf(customer_id)).filter(
              ({ credit_note_status }) => credit_note_status === 'FINALIZED',
            );
            const note = notes[one.nth % Math.max(1, notes.length)];
            if (note) await ask('POST', `/creditnotes/${note.id}/void`);
            return;
          }
          if (one.does === 'refund') {
            const payments = await paymentsOf(customer_id);
            const payment = payments[one.nth % Math.max(1, payments.length)];
            if (!payment) return;
            const amount = roundMoney(new Decimal(payment.amount).times(one.tenths).dividedBy(10), currency);
            if (amount.gt(0))
              await ask('POST', `/payments/${payment.id}/refund`, {
                amount: amount.toFixed(),
                idempotency_key: `refund ${names} ${++memo}`,
              });
            return;
          }
          if (one.does === 'quantity') {
            const { line_items } = await world.subscription(name);
            const line = line_items.find(({ end_date, price_type }) => end_date === null && price_type === 'FIXED');
            if (!line) return;
            const quantity_change_params = { line_items: [{ id: line.id, quantity: String(one.quantity) }] };
            await ask('POST', `/subscriptions/${id}/modify/execute`, {
              type: 'quantity_change',
              quantity_change_params,
            });
            return;
          }
          if (one.does === 'plan') {
            if (isThreshold) return;
            const next = plan === 'One' ? 'Two' : 'One';
            const done = await ask('POST', `/subscriptions/${id}/change/execute`, {
              target_plan_id: world.id(`plan ${next} ${currency}`),
              proration_behavior: 'create_prorations',
              billing_cadence: 'RECURRING',
              billing_period: 'MONTHLY',
              billing_period_count: 1,
              billing_cycle: 'anniversary',
            });
            if (done) plan = next;
            return;
          }
          if (one.does === 'use') {
            const event_id = `event_${names}_${++memo}`;
            await world.send([world.event(name, 'calls', { n: one.units, event_id })]);
            events.push(event_id);
            log.push(`use ${one.units}`);
            if (isThreshold) {
              await world.waitForPipeline();
              const { failed } = await billThresholds(world.api.services, world.now);
              expect(failed).to.deep.equal([]);
            }
            await world.waitForPipeline();
            return;
          }
          if (one.does === 'unuse') {
            const event_id = events.pop();
            if (!event_id) return;
            await world.replace(event_id, world.event(name, 'calls', { n: 0 }));
            await world.waitForPipeline();
            return;
          }
          if (one.does === 'void' || one.does === 'recalculate') {
            const all = await final();
            const invoice = all[one.nth % Math.max(1, all.length)];
            if (!invoice) return;
            if (one.does === 'void') await ask('POST', `/invoices/${invoice.id}/void`);
            else await ask('POST', `/invoices/${invoice.id}/recalculate?finalize=true`);
            return;
          }
          if (one.does === 'oneOff') {
            const amount = String(one.tenths * 7 * unit);
            const invoice = await ask('POST', '/invoices', {
              customer_id,
              currency,
              invoice_type: 'ONE_OFF',
              amount_due: amount,
              total: amount,
              subtotal: amount,
              line_items: [{ display_name: 'work', amount, quantity: '1' }],
            });
            await ask('POST', `/invoices/${invoice!.id}/finalize`);
            return;
          }
          if (one.does === 'month' && month < 3) {
            now = Date.UTC(2026, ++month, 1);
            log.push(`month ${month}`);
            await world.on(new Date(now).toISOString());
            await world.finalize();
            return;
          }
        };
        for (const { step: one, days } of steps) {
          const next = Math.min(now + (days * DAY_MS) / 10, Date.UTC(2026, month + 1, 1) - 1000);
          now = Math.max(now, next);
          world.at(new Date(now).toISOString());
          log.push(`@ ${new Date(now).toISOString()} ${JSON.stringify(one)}`);
          await act(one);
          await check(customer_id);
        }
        await ask('POST', `/subscriptions/${id}/cancel`, {
          cancellation_type: 'immediate',
          proration_behavior: 'create_prorations',
        });
        await check(customer_id);
        await world.waitForPipeline();
        for (const one of await invoicesOf(customer_id))
          if (one.invoice_status === 'DRAFT') await ask('POST', `/invoices/${one.id}/finalize`);
        await check(customer_id, true);
      }),
      { numRuns: samples(6), endOnFailure: true },
    );
  }).timeout(900_000);
});
