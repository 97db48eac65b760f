/**
 * Whatever happens between the draft and the final invoice: that says what a plan made then says, whether one was made or not. A
 * world goes on month after month; each month random things happen while the drafts rest, and each draft is computed and made final once
 * in a transaction that is undone, from the stores alone, and then by the job (docs/decisions/0007-cached-answers.md).
 */
import { expect } from 'chai';
import fc from 'fast-check';
import { computeLast } from '../../actions/invoicing/invoices/compute-invoice.ts';
import { finalizeReady } from '../../actions/invoicing/invoices/finalize-invoice.ts';
import { billDuePeriods } from '../../actions/lifecycle/billing/bill-period.ts';
import { finalizeDueInvoices } from '../../actions/lifecycle/invoices/finalize-due-invoices.ts';
import { InvoiceModel } from '../../storage/models/invoicing/invoice.ts';
import { listDueDrafts } from '../../storage/queue/due-billing.ts';
import { UsageCache } from '../../storage/usage/usage-cache.ts';
import { type Restless, startRestless, WHO } from '../support/restless.ts';
import { samples } from '../support/samples.ts';
import { startWorld, type World } from '../support/world.ts';

const HOUR_MS = 3_600_000;
const n = fc.integer({ min: 1, max: 20 });
const who = fc.constantFrom(...WHO);
/** What is used in a month, and what is done while its drafts rest. */
const months = (deeds: readonly string[]) =>
  fc.record({
    used: fc.array(fc.record({ who, day: fc.integer({ min: 1, max: 27 }), n }), { maxLength: 12 }),
    deeds: fc.array(
      fc.record({ does: fc.constantFrom(...deeds), who, which: fc.nat(11), day: fc.integer({ min: 1, max: 28 }), n }),
      { maxLength: 3 },
    ),
  });
type Month = ReturnType<typeof months> extends fc.Arbitrary<infer One> ? One : never;

describe('laws of resting plans', function () {
  this.timeout(900_000);
  let world: World;
  let restless: Restless;
  let planned = new Set<string>();
  let rested = 0;

  const services = () => world.api.services;
  const scope = () => world.api.scope;
  const iso = (ms: number) => new Date(ms).toISOString();
  const note = ({ sql, bindings }: { sql: string; bindings: unknown[] }) => {
    // Each plan reads the lines of its subscription.
    if (!/from "subscription_line_items" .* order by "id" asc$/.test(sql)) return;
    for (const id of bindings.flat()) planned.add(id as string);
  };

  before(async () => {
    const memory = new UsageCache();
    world = await startWorld({ now: '2031-01-01T00:00:00Z', usage_cache: memory });
    restless = await startRestless(world, memory);
    services().postgres.on('query', note);
  });
  after(() => world.stop());

  /** Plans each draft again from the stores alone, without an effect, and returns the outcomes. */
  async function planAgain(ids: readonly string[]) {
    const alone = { ...services(), usage_cache: undefined };
    const said = new Map<string, string | string[]>();
    const undone = new Error('undone');
    const work = alone.postgres.transaction(async (transaction) => {
      for (const invoice_id of ids) {
        const { subscription_id } = await InvoiceModel.fetch(scope(), invoice_id, { database: transaction });
        const last = { scope: scope(), invoice_id, subscription_id: subscription_id ?? null, now: world.now };
        const ready = await computeLast(alone, transaction, last);
        if (typeof ready === 'string') said.set(invoice_id, ready);
        else {
          const { invoices } = await finalizeReady(transaction, scope(), { ready: [ready], now: world.now });
          said.set(invoice_id, saidBy(invoices[0]!));
        }
      }
      throw undone;
    });
    await work.catch((error) => {
      if (error !== undone) throw error;
    });
    return said;
  }

  function saidBy({ line_items, ...invoice }: { line_items: readonly object[] }) {
    const fields = (of: Record<string, unknown>, names: string[]) => names.map((name) => String(of[name] ?? ''));
    const sums = ['subtotal', 'total_discount', 'total_tax', 'total_prepaid_credits_applied', 'total', 'amount_due'];
    const parts = ['display_name', 'quantity', 'amount', 'tax_amount', 'line_item_discount', 'prepaid_credits_applied'];
    return [fields(invoice, sums), ...line_items.map((one) => fields(one as Record<string, unknown>, parts))].map(
      (of) => of.join(' | '),
    );
  }

  async function live({ used: uses, deeds }: Month): Promise<void> {
    for (const { who, day, n } of uses) await restless.use(who, n, day);
    const start = restless.nextMonth();
    world.at(iso(start));
    await world.waitForPipeline();
    const { failed } = await billDuePeriods(services(), world.now, { only: scope() });
    expect(failed).to.deep.equal([]);
    for (const one of deeds) {
      await restless.does(one);
    }
    world.at(iso(start + 3 * HOUR_MS));
    await world.waitForPipeline();
    await isFinalAsPlanned();
  }

  async function isFinalAsPlanned(): Promise<void> {
    const only = scope();
    const due = await listDueDrafts(services().postgres, { now: world.now, delay_seconds: 7200, left: [], only });
    const replanned = await planAgain(due.map(({ id }) => id));
    planned = new Set();
    const report = await finalizeDueInvoices(services(), { now: world.now, delay_seconds: 7200, only });
    expect(report.failed).to.deep.equal([]);
    for (const [id, said] of replanned) {
      const invoice = await world.get(`/invoices/${id}`);
      expect(typeof said === 'string' ? said : saidBy(invoice), id).to.deep.equal(
        typeof said === 'string' ? { SKIPPED: 'skipped', DRAFT: 'waiting' }[invoice.invoice_status as string] : said,
      );
      if (!planned.has(invoice.subscription_id!)) rested++;
    }
  }

  it('what becomes final says what a plan would say, whatever has happened while the draft rested', async () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    for (const one of fc.sample(months(restless.deeds), { numRuns: samples(14), seed }))
      await live(one).catch((error) => {
        throw new Error(`seed ${seed}: ${JSON.stringify(one)}`, { cause: error });
      });
    expect(rested, 'drafts that were not planned again').to.be.above(0);
  });
});
