/**
 * What drafts of later periods say of a charge is computed anew before they are final, and is no part of what was billed for it
 * (docs/rules/invoices.md, "Late events").
 */
import { expect } from 'chai';
import type { Invoice } from '../support/answers.ts';
import { startWorld, usage, type World } from '../support/world.ts';

describe('scenario: late events, and drafts of later periods', () => {
  let world: World;
  before(async () => {
    world = await startWorld({ now: '2026-01-01T00:00:00Z' });
    await world.meter('calls');
    await world.plan('Daily', [usage('calls', '1', { billing_period: 'DAILY', display_name: 'calls' })]);
  });
  after(() => world.stop());

  const invoicesOf = async (customer: string) =>
    (await world.invoices(customer)).toSorted((a, b) => (a.period_start! < b.period_start! ? -1 : 1));
  const compute = ({ id }: Invoice) => world.post(`/invoices/${id}/compute?sync=true`, {});
  const linesOf = async ({ id }: Invoice): Promise<string[]> =>
    (await world.get(`/invoices/${id}`)).line_items.map((line) => `${line.quantity} = ${line.amount}`);

  it('a day that was skipped is carried by a later one until it is computed again; what is between gives nothing of that back', async () => {
    await world.subscribe('acme', 'Daily', { billing_period: 'DAILY' });
    const on = (day: number, n: number) => world.use('acme', 'calls', n, { at: `2026-01-0${day}T12:00:00Z` });
    await Promise.all([on(2, 20), on(3, 30)]);
    world.at('2026-01-04T00:00:00Z');
    await world.bill();
    const [first, second, third] = await invoicesOf('acme');
    expect([first!, second!, third!].map(({ invoice_status }) => invoice_status)).to.deep.equal([
      'SKIPPED',
      'DRAFT',
      'DRAFT',
    ]);
    await on(1, 5);
    await world.waitForPipeline();
    await compute(third!);
    expect(await linesOf(third!)).to.have.members(['30 = 30', '5 = 5']);
    await on(1, 2);
    await world.waitForPipeline();
    await compute(first!);
    await world.post(`/invoices/${first!.id}/finalize`, {});
    expect(await linesOf(first!)).to.deep.equal(['7 = 7']);
    await compute(second!);
    expect(await linesOf(second!)).to.deep.equal(['20 = 20']);
    await compute(third!);
    expect(await linesOf(third!)).to.deep.equal(['30 = 30']);
  });

  it('of two drafts the earlier says what came late, and the later one, computed behind it, does not say it again', async () => {
    await world.subscribe('bolt', 'Daily', { billing_period: 'DAILY', start_date: '2026-01-01T00:00:00Z' });
    const on = (day: number, n: number) => world.use('bolt', 'calls', n, { at: `2026-01-0${day}T12:00:00Z` });
    await Promise.all([on(1, 10), on(2, 20), on(3, 30)]);
    await world.bill();
    const [first, second, third] = await invoicesOf('bolt');
    await world.post(`/invoices/${first!.id}/finalize`, {});
    await on(1, 1);
    await world.waitForPipeline();
    await compute(third!);
    await compute(second!);
    await compute(third!);
    expect(await linesOf(second!)).to.have.members(['20 = 20', '1 = 1']);
    expect(await linesOf(third!)).to.deep.equal(['30 = 30']);
    await world.finalize();
    const billed = (await invoicesOf('bolt')).map(({ total }) => Number(total));
    expect(billed.reduce((sum, each) => sum + each, 0)).to.equal(61);
  });
});
