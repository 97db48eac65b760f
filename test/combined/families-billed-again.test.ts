/**
 * Invoices of families that are voided and billed again (docs/rules/invoices.md, "Billing again"; docs/rules/subscriptions.md, "Families"):
 * everybody who was on one is on the next, for the same customer, whoever has joined or left since.
 */
import { expect } from 'chai';
import type { Invoice, InvoiceLine } from '../support/answers.ts';
import { fixed, startWorld, statement, usage, type World } from '../support/world.ts';

const at = (day: string) => `2026-${day}T00:00:00Z`;

describe('scenario: families billed again', () => {
  let world: World;

  before(async () => {
    world = await startWorld();
    await world.meter('calls');
    await world.plan('Team', [
      fixed('31', { invoice_cadence: 'ADVANCE', display_name: 'base' }),
      fixed('5', { invoice_cadence: 'ARREAR', display_name: 'support' }),
      usage('calls', '1', { display_name: 'calls' }),
    ]);
    for (const name of ['heir', 'head office', 'later']) await world.customer(name);
    for (const name of ['child', 'sister']) await world.subscribe(name, 'Team');
    const group = [world.id('subscription child'), world.id('subscription sister')];
    await world.subscribe('group', 'Team', { inheritance: { subscriptions_ids_for_grouped_invoicing: group } });
    await world.subscribe('club', 'Team', {
      inheritance: { external_customer_ids_to_inherit_subscription: ['heir'] },
    });
    await world.subscribe('branch', 'Team', { inheritance: { invoicing_customer_external_id: 'head office' } });
    await world.send([
      world.event('group', 'calls', { n: 10, at: at('01-05') }),
      world.event('child', 'calls', { n: 40, at: at('01-05') }),
      world.event('heir', 'calls', { n: 7, at: at('01-05') }),
      world.event('branch', 'calls', { n: 3, at: at('01-05') }),
    ]);
    await world.on('2026-02-01');
    await world.finalize();
  });
  after(() => world.stop());

  const standing = async (name: string) =>
    (await world.invoices(name)).filter(({ invoice_status }) => invoice_status !== 'VOIDED');
  const last = async (name: string) =>
    (await standing(name)).findLast(({ billing_reason }) => billing_reason !== 'SUBSCRIPTION_CREATE');
  const told = (invoice: Invoice) => {
    const [head, ...lines] = statement(invoice).split('\n');
    return { total: head!.split(' ').at(-1), lines: lines.sort(), of: invoice.customer_id };
  };
  const again = (id: string, query: '' | `?${string}` = '') => world.post(`/invoices/${id}/recalculate${query}`, {});
  const modify = (name: string, params: Record<string, unknown>) =>
    world.post(`/subscriptions/${world.id(`subscription ${name}`)}/modify/execute`, params);

  const FAMILIES = { group: '158', club: '43', branch: '39' };

  for (const [name, total] of Object.entries(FAMILIES))
    it(`what has not changed costs the same, however often and in whichever way: ${name}`, async () => {
      const first = await last(name);
      expect([told(first!).total, first!.invoice_status]).to.deep.equal([total, 'FINALIZED']);
      const ways = [
        (id: string) => again(id, '?finalize=true'),
        async (id: string) => {
          await world.post(`/invoices/${id}/void`, {});
          return again(id);
        },
        (id: string) => again(id),
        (id: string) => again(id, '?finalize=true'),
      ];
      for (const way of ways) expect(told(await way((await last(name))!.id))).to.deep.equal(told(first!));
      expect(await standing(name), 'the opening, and one of the period').to.have.length(2);
    });

  it('so is what was paid for in advance, at the opening', async () => {
    for (const name of Object.keys(FAMILIES)) {
      const [opening] = await standing(name);
      expect(told(await again(opening!.id, '?finalize=true')), name).to.deep.equal(told(opening!));
    }
  });

  it('what came late since is on it, also of who has left; and who has joined is not', async () => {
    const child = world.id('subscription child');
    const grouped = (params: { action: string; child_subscription_ids: string[] }) =>
      modify('group', { type: 'grouped_invoicing', grouped_invoicing_params: params });
    await world.send([world.event('child', 'calls', { n: 5, at: at('01-06') })]);
    await world.on('2026-02-10');
    await grouped({ action: 'remove', child_subscription_ids: [child] });
    const heir = { external_customer_ids_to_remove: ['heir'] };
    await modify('club', { type: 'inheritance', inheritance_params: { action: 'remove', ...heir } });
    await world.send([world.event('heir', 'calls', { n: 1, at: at('01-07') })]);
    await world.subscribe('later', 'Team', { start_date: at('02-01') });
    await grouped({ action: 'add', child_subscription_ids: [world.id('subscription later')] });
    await world.waitForPipeline();
    const before = await last('group');
    const { lines, ...said } = told(await again(before!.id, '?finalize=true'));
    const expected = told(before!).lines.map((line) => line.replace('40 = 40', '45 = 45'));
    expect({ lines, ...said }).to.deep.equal({ total: '163', of: before!.customer_id, lines: expected });
    expect(told(await again((await last('club'))!.id, '?finalize=true')).lines).to.include(
      '  calls 2026-01-01..2026-02-01: 8 = 8',
    );
  });

  it('each charge stands once, whoever it is invoiced with from then on', async () => {
    await world.on('2026-03-01');
    await world.finalize();
    const linesOf = async (name: string) => (await standing(name)).flatMap(({ line_items }) => line_items);
    const all = (await Promise.all(['group', 'child', 'sister', 'later'].map(linesOf))).flat();
    const charge = ({ subscription_line_item_id, period_start, period_end }: InvoiceLine) =>
      `${subscription_line_item_id} ${period_start} ${period_end}`;
    expect(new Set(all.map(charge)).size).to.equal(all.length);
    const of = (name: string) => all.filter((line) => line.subscription_id === world.id(`subscription ${name}`));
    // Three months in advance, two of support.
    for (const [name, calls] of [
      ['group', 10],
      ['child', 45],
      ['sister', 0],
    ] as const)
      expect(
        of(name).reduce((sum, { amount }) => sum + Number(amount), 0),
        name,
      ).to.equal(3 * 31 + 2 * 5 + calls);
  });

  it('the last invoices of a group, and what comes behind them, too', async () => {
    await world.on('2026-03-11', () => world.cancel('sister'));
    await world.on('2026-03-21', () => world.cancel('group'));
    await world.finalize();
    const ended = await last('group');
    expect(ended!.billing_reason).to.equal('PRORATION');
    const ofSister = ended!.line_items.filter((line) => line.subscription_id !== ended!.subscription_id);
    expect(ofSister, 'the arrears of who ended before it').to.have.length(2);
    expect(told(await again(ended!.id))).to.deep.equal(told(ended!));
    const draft = await last('group');
    expect(told(await again(draft!.id, '?finalize=true'))).to.deep.equal(told(ended!));
  });
});
