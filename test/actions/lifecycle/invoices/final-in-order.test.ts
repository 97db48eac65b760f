/** Hundreds of drafts of one environment: each group is computed while the one before it is written, and becomes final behind it. */
import { expect } from 'chai';
import { finalizeDueInvoices } from '../../../../actions/lifecycle/invoices/finalize-due-invoices.ts';
import { copyCustomers } from '../../../../bench/copied-customers.ts';
import { listDueDrafts } from '../../../../storage/queue/due-billing.ts';
import { fixed, startWorld, type World } from '../../../support/world.ts';

const DRAFTS = 310;
type Row = { readonly id: string; readonly invoice_number: string | null; readonly invoice_status: string };

describe('drafts that become final in groups', () => {
  let world: World;
  beforeEach(async () => {
    world = await startWorld();
    await world.plan('Arrears', [fixed('5')]);
    await world.on('2026-01-01');
    await world.subscribe('customer 0', 'Arrears');
    await world.on('2026-02-01');
    const { postgres } = world.api.services;
    const ask = async ({ sql }: { sql: string }) => (await postgres.raw(sql.replaceAll('?', '\\?'))).rows;
    await copyCustomers({ call: ask } as never, world.api.scope.environment_id, DRAFTS - 1);
  });
  afterEach(() => world.stop());

  const stores = () => world.api.services;
  const finalize = () => finalizeDueInvoices(stores(), { now: world.now, delay_seconds: 0 });
  const inOrder = async () =>
    (await listDueDrafts(stores().postgres, { now: world.now, delay_seconds: 0, left: [] })).map(({ id }) => id);
  async function found(): Promise<Map<string, Row>> {
    const rows: Row[] = await stores().postgres('invoices').select('id', 'invoice_number', 'invoice_status');
    return new Map(rows.map((row) => [row.id, row]));
  }
  const numberOf = (nth: number) => `INV-202602-${String(nth + 1).padStart(5, '0')}`;

  it('get their numbers in the order of what has rested longest, without a gap, and each is told once', async () => {
    const ids = await inOrder();
    expect(ids).to.have.length(DRAFTS);
    const told: number[] = [];
    const onProgress = ({ finalized }: { finalized: number }) => void told.push(finalized);
    const { finalized } = await finalizeDueInvoices(stores(), { now: world.now, delay_seconds: 0, onProgress });
    expect(finalized).to.equal(DRAFTS);
    expect(told, 'while it goes on').to.include.oneOf([100, 200]);
    const invoices = await found();
    expect(ids.map((id) => invoices.get(id)!.invoice_number)).to.deep.equal(ids.map((_, nth) => numberOf(nth)));
    const { rows } = await stores().postgres.raw(
      `select count(*)::int as told, count(distinct entity_id)::int as of from system_events where event_name = 'invoice.finalized'`,
    );
    expect(rows).to.deep.equal([{ told: DRAFTS, of: DRAFTS }]);
  });

  it('one that cannot, behind what the next group has computed already: that makes way, and all others are in order', async () => {
    const ids = await inOrder();
    const [broken, later] = [ids[70]!, ids[299]!];
    const { postgres } = stores();
    // Postgres refuses them when they are written, and not before.
    await postgres.raw(
      `alter table invoices add constraint dies check (id not in ('${broken}', '${later}') or invoice_status = 'DRAFT') not valid`,
    );
    const report = await finalize();
    expect(report.failed.map(({ id }) => id)).to.deep.equal([broken, later]);
    expect(report.finalized).to.equal(DRAFTS - 2);
    const invoices = await found();
    const others = ids.filter((id) => id !== broken && id !== later);
    expect(others.map((id) => invoices.get(id)!.invoice_number)).to.deep.equal(others.map((_, nth) => numberOf(nth)));
    expect([broken, later].map((id) => invoices.get(id)!.invoice_status)).to.deep.equal(['DRAFT', 'DRAFT']);
  });

  it('two runs at once: every draft becomes final once, and there is no gap', async () => {
    const reports = await Promise.all([finalize(), finalize()]);
    expect(reports.flatMap(({ failed }) => failed)).to.deep.equal([]);
    const numbers = Array.from((await found()).values(), ({ invoice_number }) => invoice_number).sort();
    expect(numbers).to.deep.equal(numbers.map((_, nth) => numberOf(nth)));
  });

  it('a process that dies in the middle: the next goes on behind the last number', async () => {
    const { postgres } = stores();
    // Near the end of the third group: whoever comes after it is given the same number and dies of it, each alone.
    await postgres.raw(`create function dies() returns trigger language plpgsql as $$
      begin if new.invoice_number = '${numberOf(295)}' then perform pg_terminate_backend(pg_backend_pid()); end if; return new; end $$`);
    await postgres.raw('create trigger dies before update on invoices for each row execute function dies()');
    const broken = await finalize().catch(() => null);
    expect(broken?.finalized ?? 0).to.be.lessThan(DRAFTS);
    await postgres.raw('drop trigger dies on invoices');
    expect((await finalize()).failed).to.deep.equal([]);
    const numbers = Array.from((await found()).values(), ({ invoice_number }) => invoice_number).sort();
    expect(numbers).to.deep.equal(numbers.map((_, nth) => numberOf(nth)));
  });
});
