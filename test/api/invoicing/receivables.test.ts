import { expect } from 'chai';
import { startTestApi, type TestApi } from '../../support/api.ts';

describe('receivables by age', () => {
  let api: TestApi;

  before(async () => {
    api = await startTestApi({ now: '2026-01-01T00:00:00Z' });
    await api.request('PUT', '/settings/invoice_config', { body: { value: { due_date_days: 0 } } });
    for (const name of ['acme', 'globex', 'payer'])
      await api.request('POST', '/customers', { body: { external_id: name, name: `The ${name}` } });
  });
  after(() => api.stop());

  const invoiced = async (external_id: string, day: string, amount: string, currency = 'usd') => {
    api.setNow(`${day}T00:00:00Z`);
    const { body: found } = await api.request('GET', `/customers/external/${external_id}`);
    const sums = { subtotal: amount, total: amount, amount_due: amount };
    const body = { customer_id: found.id, currency, ...sums, invoice_status: 'FINALIZED' };
    const { status, body: invoice, text } = await api.request('POST', '/invoices', { body });
    expect(status, text).to.equal(201);
    return invoice;
  };
  const receivables = async (query: `?${string}` | '' = '') =>
    (await api.request('GET', `/dashboard/receivables${query}`)).body;
  const idsOf = async (statuses: string) => {
    const { body } = await api.request('GET', `/invoices?payment_status=${statuses}&limit=100`);
    return body.items.map(({ id }: { id: string }) => id).sort();
  };

  it('sums what is unpaid, by customer, currency and the days since it was due', async () => {
    const first = await invoiced('acme', '2026-01-01', '100');
    await invoiced('acme', '2026-02-10', '20.5');
    await invoiced('globex', '2026-03-15', '7');
    await invoiced('globex', '2026-03-20', '9', 'eur');
    const paid = await invoiced('payer', '2026-01-02', '50');
    await api.request('PUT', `/invoices/${paid.id}/payment`, { body: { payment_status: 'SUCCEEDED' } });
    const due = await invoiced('payer', '2026-04-10', '30');
    api.setNow('2026-04-10T00:00:00Z');

    const { totals, items, pagination, as_of } = await receivables();
    expect([as_of, pagination.total]).to.deep.equal(['2026-04-10T00:00:00Z', 4]);
    expect(totals).to.deep.equal([
      {
        ...{ currency: 'eur', not_due: '0', overdue_1_to_30: '9', overdue_31_to_60: '0', overdue_61_to_90: '0' },
        ...{ overdue_over_90: '0', total_overdue: '9', total_unpaid: '9', invoice_count: 1, customer_count: 1 },
      },
      {
        ...{ currency: 'usd', not_due: '30', overdue_1_to_30: '7', overdue_31_to_60: '20.5', overdue_61_to_90: '0' },
        ...{
          overdue_over_90: '100',
          total_overdue: '127.5',
          total_unpaid: '157.5',
          invoice_count: 4,
          customer_count: 3,
        },
      },
    ]);
    const owing = items.map((one) => [one.external_customer_id, one.currency, one.total_overdue, one.total_unpaid]);
    expect(owing).to.deep.equal([
      ['acme', 'usd', '120.5', '120.5'],
      ['globex', 'eur', '9', '9'],
      ['globex', 'usd', '7', '7'],
      ['payer', 'usd', '0', '30'],
    ]);
    expect(items[0]).to.include({ customer_name: 'The acme', oldest_due_date: first.due_date, invoice_count: 2 });
    expect((await receivables('?currency=EUR')).items).to.have.length(1);
    expect((await receivables('?limit=1&offset=2')).items.map(({ currency }) => currency)).to.deep.equal(['usd']);

    api.setNow('2026-04-20T00:00:00Z');
    const first_page = await receivables('?limit=2');
    expect([first_page.as_of, first_page.items[0]!.total_overdue]).to.deep.equal(['2026-04-20T00:00:00Z', '120.5']);
    const cursor = first_page.pagination.next_cursor!;
    // A customer who comes before the cursor shifts an offset, and not the page after the cursor.
    await invoiced('payer', '2026-04-19', '500', 'chf');
    api.setNow('2026-04-30T00:00:00Z');
    expect((await receivables('?limit=2&offset=2')).items.map(({ total_unpaid }) => total_unpaid)).to.deep.equal([
      '30',
      '9',
    ]);
    const next = await receivables(`?limit=2&cursor=${cursor}`);
    expect([next.as_of, next.pagination.next_cursor]).to.deep.equal([first_page.as_of, null]);
    expect(next.items.map(({ currency, total_unpaid }) => [currency, total_unpaid])).to.deep.equal([
      ['eur', '9'],
      ['usd', '7'],
    ]);
    for (const wrong of [`cursor=${cursor}&offset=1`, 'cursor=x'] as const)
      expect((await api.request('GET', `/dashboard/receivables?${wrong}`)).status, wrong).to.equal(400);
    api.setNow('2026-04-10T00:00:00Z');

    const overdue = await idsOf('OVERDUE');
    expect(overdue).to.have.length(4).and.not.include(due.id).and.not.include(paid.id);
    expect(await idsOf('OVERDUE,SUCCEEDED')).to.deep.equal([...overdue, paid.id].sort());
    const searched = await api.request('POST', '/invoices/search', { body: { payment_status: ['overdue'] } });
    expect(searched.body.pagination.total).to.equal(4);
  });

  it('are listed by overdue=true, and all other invoices by overdue=false', async () => {
    const list = async (query: string) => {
      const { status, body, text } = await api.request('GET', `/invoices?limit=100&${query}`);
      expect(status, text).to.equal(200);
      return body.items.map(({ id }) => id).sort();
    };
    const body = { customer_id: (await api.request('GET', '/customers/external/acme')).body.id, currency: 'usd' };
    const sums = { subtotal: '5', total: '5', amount_due: '5' };
    const { body: draft } = await api.request('POST', '/invoices', { body: { ...body, ...sums } });
    const overdue = await list('overdue=true');
    const others = await list('overdue=false');
    expect(overdue)
      .to.have.length(4)
      .and.deep.equal(await idsOf('OVERDUE'));
    expect(others).to.include(draft.id);
    expect([...overdue, ...others].sort()).to.deep.equal(await list(''));
    const both = await api.request('POST', '/invoices/search', { body: { overdue: true, currency: 'eur' } });
    expect(both.body.pagination.total).to.equal(1);
    const wrong = await api.request('GET', '/invoices?overdue=perhaps');
    expect([wrong.status, wrong.body.details?.field]).to.deep.equal([400, 'overdue']);
  });

  it('is of the tenant alone, and needs the permission to read customers too', async () => {
    const { key } = await api.otherTenant();
    const other = await api.request('GET', '/dashboard/receivables', { key });
    expect([other.body.items, other.body.totals]).to.deep.equal([[], []]);
    expect((await api.request('GET', '/dashboard/receivables', { key: 'sk_wrong' })).status).to.equal(401);
  });
});
