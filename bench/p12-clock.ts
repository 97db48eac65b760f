/**
 * P12: the test clock of an environment. Advances an environment over many months at once: customers with a fixed price in advance and
 * usage in arrears. The result is billing periods per second, including all invoices, numbers, changes and system events. For comparison,
 * up to a year of the same months runs in another environment by single API calls: the clock is advanced to the end of each month, and each
 * draft is computed and finalized by a call. The invoices of both must be equal. Ten years of a hundred customers: `--customers=100
 * --months=120`.
 */
import { type BillingCaller, type Found, makeWorld, type Size } from './billing-world.ts';
import { pause, post, startService } from './processes.ts';
import { check, claim, fixed, flag, say } from './report.ts';

const MUST_PER_SECOND = 300;
/** Maximum number of months that are billed by single calls, because these take long. Each month takes about the same time. */
const MONTHS_BY_HAND = 12;

type Clock = Found & {
  readonly test_clock_status: string;
  readonly failure: unknown;
  readonly progress: { readonly instants: number; readonly done: Readonly<Record<string, number>> };
};
type Invoice = Found & { readonly total: string; readonly invoice_number: string };

export async function run(): Promise<void> {
  const size = { customers: flag('customers', 20), months: flag('months', 12) };
  const service = await startService();
  try {
    const less = { ...size, months: Math.min(size.months, MONTHS_BY_HAND) };
    const [whole, single] = [await makeWorld(service, size), await makeWorld(service, less)];
    const before = service.cpu();
    const { seconds, progress } = await timed(() => advance(whole, afterRest(size.months)));
    const cpu = service.cpu();
    const periods = size.customers * size.months;
    check(progress.done.billed === periods, `${progress.done.billed} of ${periods} periods`);
    const byHand = await timed(() => oneByOne(single, less));
    check(same(await invoicesOf(whole), await invoicesOf(single)), 'both have the same invoices');
    const [rate, slow] = [periods / seconds, (less.customers * less.months) / byHand.seconds];
    const each = (used: number) => `${fixed((used * 1000) / periods)} ms`;
    say(`  ${periods} periods at ${progress.instants} instants in ${fixed(seconds)} s: ${fixed(1000 / rate)} ms each`);
    const [postgres, clickhouse] = [cpu.postgres - before.postgres, cpu.clickhouse - before.clickhouse];
    const stores = `Postgres ${each(postgres)}, ClickHouse ${each(clickhouse)}`;
    say(`  CPU per period: ${each(cpu.total - before.total)}, of which ${stores}`);
    say(
      `  invoice by invoice, ${less.months} months: ${fixed(slow)} periods a second, ${fixed(rate / slow)} times as long`,
    );
    claim('billing periods per second', fixed(rate), `${MUST_PER_SECOND}`, rate >= MUST_PER_SECOND);
  } finally {
    await service.stop();
  }
}

type Timed = { readonly seconds: number; readonly progress: Clock['progress'] };

async function timed(work: () => Promise<Clock>): Promise<Timed> {
  const began = performance.now();
  const { progress } = await work();
  return { seconds: (performance.now() - began) / 1000, progress };
}

/** Instant at which the finalization delay of this month's drafts is over. */
function afterRest(month: number): string {
  return new Date(Date.UTC(2026, month, 1, 3)).toISOString();
}

async function advance(caller: BillingCaller, frozen_time: string): Promise<Clock> {
  await post(caller, `/test-clocks/${caller.clock}/advance`, { frozen_time });
  for (;;) {
    const [clock] = (await post<{ items: Clock[] }>(caller, '/test-clocks/search', {})).items;
    if (clock!.test_clock_status === 'ready') return clock!;
    check(clock!.failure === null, JSON.stringify(clock!.failure));
    await pause(100);
  }
}

async function oneByOne(caller: BillingCaller, { months }: Size): Promise<Clock> {
  for (let month = 1; ; month++) {
    const clock = await advance(caller, new Date(Date.UTC(2026, month, 1)).toISOString());
    const { items } = await post<{ items: Found[] }>(caller, '/invoices/search', DRAFTS);
    for (const { id } of items) {
      await post(caller, `/invoices/${id}/compute?sync=true`, {});
      await post(caller, `/invoices/${id}/finalize`, {});
    }
    if (month === months) return clock;
  }
}

const DRAFTS = { invoice_status: ['DRAFT'], limit: 1000 };

async function invoicesOf(caller: BillingCaller): Promise<Invoice[]> {
  const all: Invoice[] = [];
  for (;;) {
    const wanted = { invoice_status: ['FINALIZED'], limit: 1000, offset: all.length };
    const { items } = await post<{ items: Invoice[] }>(caller, '/invoices/search', wanted);
    all.push(...items);
    if (items.length < 1000) return all;
  }
}

/**
 * Compares the months that both environments have. The order of invoice numbers may differ, because single calls finalize the drafts in
 * another order.
 */
function same(whole: readonly Invoice[], single: readonly Invoice[]): boolean {
  const numbers = new Set(single.map(({ invoice_number }) => invoice_number));
  const said = (invoices: readonly Invoice[]) => [
    invoices.map(({ total }) => total).sort(),
    invoices.map(({ invoice_number }) => invoice_number).sort(),
  ];
  const both = whole.filter(({ invoice_number }) => numbers.has(invoice_number));
  return JSON.stringify(said(both)) === JSON.stringify(said(single));
}
