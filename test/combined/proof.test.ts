/** Invoices that are checked by whoever gets them: the proof, the events and the program that customers are given (docs/proof.md). */
import { expect } from 'chai';
import fc from 'fast-check';
import { billThresholds } from '../../actions/lifecycle/billing/bill-thresholds.ts';
import { Decimal } from '../../core/foundation/decimal.ts';
import { groupBy } from '../../core/foundation/group-by.ts';
import type { EventProof, InvoiceProof } from '../support/answers.ts';
import { expectGolden, withoutIds } from '../support/golden.ts';
import { some } from '../support/samples.ts';
import { check, type Proven, provenBy, type Verdict, verifier } from '../support/verifier.ts';
import { fixed, startWorld, tiers, usage, type World } from '../support/world.ts';

const plus = (amount: string, more: string) => new Decimal(amount).plus(more).toFixed();

type ProofLine = InvoiceProof['lines'][number]['line'];
type SentEvent = { event_id: string; timestamp: string; properties: Record<string, unknown> };
/** Any object or list of a document that is walked by its keys. */
type Holder = Record<string | number, unknown>;

function valueAt(document: unknown, path: readonly (string | number)[]): unknown {
  return path.reduce((inner, key) => (inner as Holder)[key], document);
}

describe('scenario: the proof of an invoice', () => {
  let world: World;
  let count = 0;
  const newName = () => `customer ${++count}`;

  before(async () => {
    world = await startWorld();
    await world.meter('calls');
    await world.meter('seats', { type: 'SUM', field: 'n' }, { reset_usage: 'NEVER' });
    await world.meter(
      'count',
      { type: 'COUNT' },
      { event_name: 'job', filters: [{ key: 'size', values: ['1000', 'big'] }] },
    );
    await world.meter('mean', { type: 'AVG', field: 'n' }, { event_name: 'job' });
    await world.meter('names', { type: 'COUNT_UNIQUE', field: 'who' }, { event_name: 'job' });
    await world.meter('newest', { type: 'LATEST', field: 'n' }, { event_name: 'job' });
    await world.meter('times', { type: 'SUM_WITH_MULTIPLIER', field: 'n', multiplier: '0.25' }, { event_name: 'job' });
    await world.meter('held', { type: 'WEIGHTED_SUM', field: 'n' }, { event_name: 'job' });
    await world.meter('most', { type: 'MAX', field: 'n' }, { event_name: 'job' });
    await world.meter('peak', { type: 'MAX', field: 'n', bucket_size: 'DAY', group_by: 'who' }, { event_name: 'job' });
    await world.meter('both', { type: 'SUM', expression: 'n * 2 + weight' }, { event_name: 'job' });
    await world.meter('root', { type: 'SUM', expression: 'sqrt(n)' }, { event_name: 'root' });
    await world.plan('Root', [usage('root', '1', { display_name: 'root' })]);
    await world.plan('Pro', [
      fixed('31', { invoice_cadence: 'ADVANCE', display_name: 'base' }),
      tiers(
        'calls',
        [
          [1000, '0.02'],
          [5000, '0.005', '1'],
          [null, '0.01'],
        ],
        { display_name: 'calls' },
      ),
      usage('seats', '2', { display_name: 'seats' }),
    ]);
    const named = (name: string) => ({ display_name: name });
    await world.plan('All', [
      usage('count', '0.333', named('count')),
      usage('mean', '1.7', named('mean')),
      usage('names', '5', { ...named('names'), billing_model: 'PACKAGE', transform_quantity: { divide_by: 2 } }),
      tiers(
        'newest',
        [
          [5, '1'],
          [null, '0.5', '3'],
        ],
        { ...named('newest'), tier_mode: 'VOLUME' },
      ),
      usage('times', '1', named('times')),
      usage('held', '1', named('held')),
      usage('most', '0.1', named('most')),
      tiers(
        'peak',
        [
          [2, '1'],
          [null, '2'],
        ],
        named('peak'),
      ),
      usage('both', '0.01', named('both')),
    ]);
    await world.plan('Calls', [usage('calls', '1', { display_name: 'calls' })]);
  });
  after(() => world.stop());

  async function proofs(name: string): Promise<Proven[]> {
    const all = await world.invoices(name);
    return Promise.all(all.filter((one) => one.invoice_status !== 'DRAFT').map(({ id }) => provenBy(world.api, id)));
  }

  /** All that was found to agree, of which the law below changes one field after the other. */
  const agreeing: Proven[] = [];

  async function agrees(name: string): Promise<(Proven & Pick<Verdict, 'stated'>)[]> {
    const all = await proofs(name);
    const verdicts = await Promise.all(all.map(check));
    for (const [index, { differences, stated }] of verdicts.entries()) {
      const proven = all[index]!;
      expect(differences).to.deep.equal([]);
      // What the document says that it cannot show is of lines of which the program could not compute something.
      const told = proven.proof.lines.flatMap(({ line, taken_as_stated }) => taken_as_stated.map(() => line.id));
      const ids = new Set(proven.proof.lines.map(({ line }) => line.id));
      const ofLines = stated.map(({ line }) => line).filter((id) => ids.has(id));
      expect(ofLines, JSON.stringify(stated)).to.include.members([...new Set(told)]);
    }
    agreeing.push(...all);
    return all.map((proven, index) => ({ ...proven, stated: verdicts[index]!.stated }));
  }

  const at = (day: number, hour = 0) => new Date(Date.UTC(2026, 0, day, hour)).toISOString();
  const job = (name: string, day: number, properties: Record<string, unknown>, hour = 12) => ({
    event_id: `${name}/${day}/${hour}`,
    event_name: 'job',
    external_customer_id: name,
    timestamp: at(day, hour),
    properties,
  });

  let ended: Promise<void> | undefined;
  /** A customer with every aggregation and every price model, whose invoice of January is final. */
  async function everything(): Promise<string> {
    const name = 'Ärzte';
    ended ??= january(name);
    await ended;
    return name;
  }

  async function january(name: string): Promise<void> {
    await world.on('2026-01-01', () => world.subscribe(name, 'All', { timezone: 'America/New_York' }));
    await world.send([
      job(name, 2, { n: 3, who: 'ä', size: 'big', weight: 0.5 }),
      job(name, 2, { n: '1.25', who: 1.0, size: 1e3, weight: 2 }, 13),
      job(name, 3, { n: 7, who: '1', size: '1e3' }, 3),
      job(name, 9, { n: -2, who: 'b', size: 'big' }),
      job(name, 20, { n: 4, who: true, note: 'two\nlines' }),
      job(name, 21, { n: 'many', who: ['no'] }),
    ]);
    await world.on('2026-02-01T05:00:00Z');
    await world.finalize();
  }

  // First: the scheduler comes to the four months of every subscription that is there.
  it('computes what is left of a commitment over several periods, and how lines share that of a subscription', async () => {
    const [own, whole, monthly] = [newName(), newName(), newName()];
    await world.on('2026-01-01');
    const { items } = await world.get(`/prices?limit=1000`);
    const price = items.find(({ display_name, amount }) => display_name === 'calls' && amount === '1');
    const terms = { commitment_amount: '100', overage_factor: '1.5', enable_true_up: true };
    const quarter = { ...terms, commitment_duration: 'QUARTERLY' };
    await world.plan('Two', [
      usage('calls', '1', { display_name: 'one' }),
      usage('calls', '0.37', { display_name: 'other' }),
    ]);
    await world.subscribe(own, 'Calls', { line_item_commitments: { [price!.id]: quarter } });
    await world.subscribe(whole, 'Two', quarter);
    await world.subscribe(monthly, 'Two', terms);
    const months: [string, string[]][] = [
      ['2026-02-01', ['60.5', '33.3', '70']],
      ['2026-03-01', ['60.5', '66.6', '100.1']],
      ['2026-04-01', ['5', '7', '3']],
      ['2026-05-01', ['1', '11', '0']],
    ];
    for (const [next, used] of months) {
      for (const [index, name] of [own, whole, monthly].entries()) await world.use(name, 'calls', used[index]!);
      await world.on(next);
      await world.finalize();
    }
    const [ofOwn, ofWhole, ofMonthly] = [await agrees(own), await agrees(whole), await agrees(monthly)];
    const totals = (all: typeof ofOwn) =>
      all.map(({ proof, stated }) => {
        const left = stated.filter(({ what }) => what.includes('left for it') || what.includes('earlier periods'));
        return [proof.invoice.total, left.length];
      });
    expect(totals(ofOwn)).to.deep.equal([
      ['60.5', 0],
      ['71', 0],
      ['7.5', 0],
      ['1', 0],
    ]);
    expect(totals(ofWhole).map(([, left]) => left)).to.deep.equal([0, 0, 0, 0]);
    expect(totals(ofMonthly).map(([, left]) => left)).to.deep.equal([0, 0, 0, 0]);

    const [, second] = ofWhole;
    const overages = second!.proof.lines.filter(({ line }) => line.computed_from!.kind === 'overage');
    expect(overages).to.have.length(2);
    const lacking = ofMonthly.at(-1)!;
    expect(lacking.proof.lines.at(-1)!.line.computed_from!.of_term).to.include({ used: '0', committed: '100' });
    const cent = (line: ProofLine, sign: string) => {
      const field = line.computed_from!.kind === 'overage' ? 'overage' : 'commitment_utilized';
      line.amount = plus(line.amount, `${sign}0.01`);
      const info = line.commitment_info!;
      info[`computed_${field}_amount`] = plus(info[`computed_${field}_amount`]!, `${sign}0.01`);
    };
    // From one line to the other the sums stay.
    const moved = structuredClone(second!.proof);
    const inside = moved.lines.filter(({ line }) => line.computed_from!.kind !== 'overage');
    cent(inside[0]!.line, '');
    cent(inside[1]!.line, '-');
    expect((await check({ ...second!, proof: moved })).differences.length).to.be.above(0);
    const used = structuredClone(second!.proof);
    for (const { line } of used.lines) line.computed_from!.of_term!.used = '0';
    expect((await check({ ...second!, proof: used })).differences.length).to.be.above(0);
    const trueUp = structuredClone(lacking.proof);
    const { line } = trueUp.lines.at(-1)!;
    line.computed_from!.of_term!.used = line.computed_from!.base_amount = '1';
    expect((await check({ ...lacking, proof: trueUp })).differences.map(({ field }) => field)).to.include(
      'computed_from.of_term.used',
    );
  });

  it('of every aggregation and every price model agrees, and is as it is written down', async () => {
    const [proven] = await agrees(await everything());
    expect(proven!.stated.map(({ what }) => what)).to.deep.equal([]);
    const document = withoutIds(proven!.proof) as InvoiceProof;
    // Where the log stood depends on what the other scenarios sent.
    for (const { line, counted } of document.lines) line.computed_from!.high_water = counted!.marks = { 0: '1' };
    document.invoice.invoice_number = 'INV';
    expectGolden('invoice-proof.json', document);
    expectGolden('invoice-proof-events.ndjson', `${(withoutIds(proven!.events) as string[]).join('\n')}\n`);
  });

  it('stays as it is when events come late or are taken back, which are proven by the next one', async () => {
    const name = newName();
    await world.on('2026-01-10', () => world.subscribe(name, 'Pro', { billing_cycle: 'calendar' }));
    await world.send([
      world.event(name, 'calls', { n: 700, at: at(12), event_id: `${name} one` }),
      world.event(name, 'calls', { n: 800, at: at(13), event_id: `${name} two` }),
      world.event(name, 'seats', { n: 3, at: at(14), event_id: `${name} seats` }),
    ]);
    await world.on('2026-02-01');
    await world.finalize();
    const [opening, first] = await agrees(name);
    expect(opening!.proof.lines[0]!.line.computed_from!.share).to.deep.equal({
      before_ms: 0,
      part_ms: 22 * 86_400_000,
      whole_ms: 31 * 86_400_000,
    });
    await world.send([world.event(name, 'calls', { n: 50, at: at(11), event_id: `${name} late` })]);
    await world.replace(`${name} two`, world.event(name, 'calls', { n: 900, at: at(13) }));
    const { status } = await world.api.request('POST', `/events/${encodeURIComponent(`${name} seats`)}/void`, {
      body: { reason: 'test' },
    });
    expect(status).to.equal(202);
    await world.on('2026-03-01');
    await world.finalize();
    const [, again, second] = await agrees(name);
    expect(again!.events).to.deep.equal(first!.events);
    expect(again!.proof.lines).to.deep.equal(first!.proof.lines);
    const late = second!.proof.lines.filter(({ line }) => line.parent_line_item_id);
    expect(late.map(({ line, seal }) => [line.display_name, line.amount, seal!.event_count])).to.deep.equal([
      ['calls (late events)', '0.75', 3],
      ['seats (late events)', '-6', 0],
    ]);
  });

  it('under commitments of a line and of the subscription says what it cannot know, and agrees in the rest', async () => {
    const [own, whole] = [newName(), newName()];
    await world.on('2026-01-01');
    const { items } = await world.get(`/prices?limit=1000`);
    const price = items.find(({ display_name, amount }) => display_name === 'calls' && amount === '1');
    const terms = { commitment_amount: '100', overage_factor: '1.5', enable_true_up: true };
    await world.subscribe(own, 'Calls', { line_item_commitments: { [price!.id]: terms } });
    await world.subscribe(whole, 'Calls', terms);
    for (const name of [own, whole]) await world.use(name, 'calls', '140.5');
    await world.on(
      '2026-02-01',
      () => world.use(own, 'calls', 70),
      () => world.use(whole, 'calls', 70),
    );
    await world.on('2026-03-01');
    await world.finalize();
    const totals = async (name: string) => (await agrees(name)).map(({ proof }) => proof.invoice.total);
    expect(await totals(own)).to.deep.equal(['160.75', '100']);
    expect(await totals(whole)).to.deep.equal(['160.75', '100']);
  });

  it('with coupons, taxes and what is given back with both agrees; what was changed of any of them is found out', async () => {
    const name = newName();
    const coupon = (
      coupon_code: string,
      fields: { type: string; percentage_off: string } | { type: string; amount_off: string; currency: string },
    ) => world.post('/coupons', { name: coupon_code, coupon_code, cadence: 'forever', ...fields });
    await coupon('SEVENTH', { type: 'percentage', percentage_off: '14.285714' });
    await coupon('FIVE', { type: 'fixed', amount_off: '5', currency: 'usd' });
    for (const [code, percentage_value, tax_behavior] of [
      ['vat', '19', 'exclusive'],
      ['city', '8.875', 'exclusive'],
      ['in it', '7', 'inclusive'],
    ])
      await world.post('/taxes/rates', { name: code, code, percentage_value, tax_behavior });
    const tax_rate_overrides = ['vat', 'city', 'in it'].map((tax_rate_code) => ({ tax_rate_code, currency: 'usd' }));
    await world.on('2026-01-01', () =>
      world.subscribe(name, 'Pro', { coupons: ['SEVENTH', 'FIVE'], tax_rate_overrides }),
    );
    await world.use(name, 'calls', 77);
    await world.send([world.event(name, 'calls', { n: 33, at: at(3), event_id: `${name} back` })]);
    await world.on('2026-02-01');
    await world.finalize();
    await world.replace(`${name} back`, world.event(name, 'calls', { n: 1, at: at(3) }));
    await world.on('2026-03-01');
    await world.finalize();
    const [opening, first, second] = await agrees(name);
    for (const { proof } of [opening!, first!])
      expect([proof.invoice.total_discount, proof.invoice.total_tax]).to.not.include('0');
    const back = second!.proof.lines.find(({ line }) => line.parent_line_item_id);
    expect(Number(back!.line.tax_amount)).to.be.below(0);

    const changes: ((proof: InvoiceProof) => void)[] = [];
    for (const field of ['total_discount', 'total_tax', 'total', 'amount_due', 'amount_remaining'] as const)
      changes.push(({ invoice }) => (invoice[field] = plus(invoice[field], '0.01')));
    for (const field of ['line_item_discount', 'invoice_level_discount', 'tax_amount'] as const)
      changes.push(({ lines }) => (lines[0]!.line[field] = plus(lines[0]!.line[field], '0.01')));
    changes.push(({ coupons }) => (coupons[0]!.terms!.percentage_off = '14.2'));
    changes.push(({ taxes: [rate] }) => (rate!.percentage_value = '19.1'));
    changes.push(({ taxes: [, , rate] }) => (rate!.tax_behavior = 'exclusive'));
    // A cent from one line to the other: the sums stay.
    changes.push(({ lines }) => {
      const [one, other] = [lines[0]!.line, lines[1]!.line];
      one.invoice_level_discount = plus(one.invoice_level_discount, '0.01');
      other.invoice_level_discount = plus(other.invoice_level_discount, '-0.01');
    });
    changes.push(({ lines }) => {
      const [one, other] = [lines[0]!.line, lines[1]!.line];
      for (const [line, cent] of [
        [one, '0.01'],
        [other, '-0.01'],
      ] as const)
        line.tax_amount = line.taxes![0]!.tax_amount = plus(line.taxes![0]!.tax_amount, cent);
    });
    expect(first!.stated.map(({ what }) => what)).to.include.members([
      'that it is taxed with vat: 19 %, exclusive',
      `that ${first!.proof.invoice.total_discount} is what these coupons agree on`,
    ]);
    for (const change of changes) {
      const proof = structuredClone(first!.proof);
      change(proof);
      const { differences } = await check({ ...first!, proof });
      expect(differences, String(change)).to.not.deep.equal([]);
    }
  });

  it('a fixed coupon takes all of its amount where nothing is given back, however its sums are written', async () => {
    const name = newName();
    const terms = { type: 'fixed', amount_off: '20', currency: 'usd', cadence: 'forever' };
    await world.post('/coupons', { name: 'TWENTY', coupon_code: 'TWENTY', ...terms });
    await world.on('2026-01-01', () => world.subscribe(name, 'Pro', { coupons: ['TWENTY'] }));
    await world.use(name, 'calls', 77);
    await world.on('2026-02-01');
    await world.finalize();
    for (const one of await agrees(name)) {
      const { invoice, coupons } = one.proof;
      expect(coupons.map(({ discounted_amount }) => discounted_amount)).to.deep.equal(['20']);
      // Two off instead of twenty, and every sum as if it were so.
      const cut = JSON.parse(JSON.stringify(one.proof).replaceAll('"20"', '"2"'));
      cut.coupons[0].terms.amount_off = '20';
      for (const field of ['total', 'amount_due', 'amount_remaining'] as const)
        cut.invoice[field] = plus(invoice[field], '18');
      const { differences } = await check({ ...one, proof: cut });
      expect(differences.map(({ field }) => field)).to.include('discounted_amount');
      for (const amount_off of ['19.99', '20.01', '700']) {
        const other = structuredClone(one.proof);
        other.coupons[0]!.terms!.amount_off = amount_off;
        expect((await check({ ...one, proof: other })).differences, amount_off).to.not.deep.equal([]);
      }
    }
  });

  it('voided and billed again less what a later invoice has said of it since agrees', async () => {
    const name = newName();
    await world.on('2026-01-01', () => world.subscribe(name, 'Pro'));
    await world.use(name, 'calls', 100);
    await world.waitForPipeline();
    await world.on('2026-02-01');
    await world.finalize();
    await world.send([world.event(name, 'calls', { n: 50, at: at(20), event_id: `${name} late` })]);
    await world.on('2026-03-01');
    await world.finalize();
    const january = (await world.invoices(name)).find(({ billing_reason }) => billing_reason === 'SUBSCRIPTION_CYCLE');
    const again = await world.post(`/invoices/${january!.id}/recalculate?finalize=true`, {});
    const reasons = again.line_items.map(({ computed_from }) => computed_from!.reason ?? '');
    expect(reasons.join()).to.match(/less [0-9.]+ that other invoices say of it/);
    await agrees(name);
  });

  it('shows that an event is in it, and is refused for one that is not', async () => {
    const name = newName();
    await world.on('2026-01-01', () => world.subscribe(name, 'Calls'));
    const events = Array.from({ length: 11 }, (_, n) =>
      world.event(name, 'calls', { n, at: at(2 + n), event_id: `${name}/${n}` }),
    );
    await world.send(events);
    await world.on('2026-02-01');
    await world.finalize();
    const { id } = (await world.invoices(name))[0]!;
    const { proof } = await provenBy(world.api, id);
    const lied = await world.get(`/invoices/${id}/proof/events/${encodeURIComponent(`${name}/4`)}`);
    for (const change of [
      (shown: EventProof) => (shown.lines[0]!.index += 1),
      (shown: EventProof) => ((shown.lines[0]!.path[0] as { side: string }).side = 'rightx'),
      (shown: EventProof) => ((shown as { format: string }).format = 'another'),
    ]) {
      const shown = structuredClone(lied);
      change(shown);
      expect((await verifier.verifyEvent(proof, shown)).differences, String(change)).to.not.deep.equal([]);
    }
    for (const { event_id } of events) {
      const shown = await world.get(`/invoices/${id}/proof/events/${encodeURIComponent(event_id as string)}`);
      expect((await verifier.verifyEvent(proof, shown)).differences).to.deep.equal([]);
      shown.lines[0]!.leaf.value += '1';
      const { differences } = await verifier.verifyEvent(proof, shown);
      expect(differences.map(({ field }) => field)).to.include('root');
    }
    const other = await world.api.request('GET', `/invoices/${id}/proof/events/none`);
    expect([other.status, other.body.code]).to.deep.equal([404, 'not_found']);
  });

  it('is checked by events of one’s own, in any order and sent twice', async () => {
    const name = await everything();
    const [{ proof, events }] = (await proofs(name)) as [Proven];
    const own = events
      .map((text) => JSON.stringify({ ...JSON.parse(text), lines: undefined, values: undefined }))
      .reverse();
    // Written by JSON.parse and JSON.stringify a number may look otherwise, and is the same.
    expect((await check({ proof, events: [...own, ...own] })).differences).to.deep.equal([]);
    const { differences } = await check({ proof, events: own.filter((text) => !text.includes(`${name}/9/`)) });
    expect(differences.map(({ field }) => field)).to.include.members([
      'seal.event_count',
      'seal.root',
      'computed_from.quantity',
    ]);
  });

  it('of an expression that is not computed there is taken as stated, with events of one’s own too', async () => {
    const name = newName();
    await world.on('2026-01-01', () => world.subscribe(name, 'Root'));
    const events = [4, 9].map((n) => world.event(name, 'root', { n, at: at(n), event_id: `${name}/${n}` }));
    await world.send(events);
    await world.on('2026-02-01');
    await world.finalize();
    const [proven] = await agrees(name);
    const own = proven!.events.map((text) =>
      JSON.stringify({ ...JSON.parse(text), lines: undefined, values: undefined }),
    );
    const { differences, stated } = await check({ proof: proven!.proof, events: own });
    expect(differences).to.deep.equal([]);
    expect(stated.map(({ what }) => what)).to.include(
      'its quantity of 5: what the expression of the meter makes of events is not computed here',
    );
  });

  it('of a draft is refused', async () => {
    const name = newName();
    await world.on('2026-01-01', () => world.subscribe(name, 'Calls'));
    await world.use(name, 'calls', 1);
    await world.on('2026-02-01');
    const { id } = (await world.invoices(name))[0]!;
    for (const path of ['proof', 'proof/events', 'proof/events/x']) {
      const { status, body } = await world.api.request('GET', `/invoices/${id}/${path}`);
      expect([status, body.code]).to.deep.equal([400, 'invalid_operation']);
    }
    await world.finalize();
  });

  it('of what is charged in other ways agrees: billed again, before its period was over, given back, free, by hand', async () => {
    const [again, reached, changed, free, hand] = [newName(), newName(), newName(), newName(), newName()];
    const ask = <Method extends string, Path extends string>(method: Method, path: Path, body: object = {}) =>
      world.api.request(method, path, { body });
    await world.on('2026-01-01');
    await world.plan('Free', [usage('calls', '1', { display_name: 'calls' })]);
    await world.post('/entitlements', {
      entity_type: 'PLAN',
      entity_id: world.id('plan Free'),
      feature_id: (await world.post('/features', { name: 'calls', type: 'metered', meter_id: world.id('meter calls') }))
        .id,
      feature_type: 'metered',
      usage_limit: 30,
    });
    await world.subscribe(again, 'Calls');
    await world.subscribe(reached, 'Calls', { auto_invoice_threshold: '50' });
    await world.subscribe(changed, 'Pro');
    await world.subscribe(free, 'Free');
    for (const name of [again, free]) await world.use(name, 'calls', 100);
    await world.use(reached, 'calls', 60);
    await world.on('2026-01-11');
    await billThresholds(world.api.services, world.now);
    await world.cancel(changed, { cancellation_type: 'immediate', proration_behavior: 'create_prorations' });
    await world.use(reached, 'calls', 5);
    await world.on('2026-02-02');
    await world.finalize();
    await world.use(again, 'calls', 50, { at: at(3) });
    await world.on('2026-03-02');
    await world.finalize();
    // A correction says 50 of January: what bills January again is less that.
    const [first] = (await world.invoices(again)).filter(({ subtotal }) => subtotal === '100');
    expect((await ask('POST', `/invoices/${first!.id}/void`)).status).to.equal(200);
    expect((await ask('POST', `/invoices/${first!.id}/recalculate?finalize=true`)).status).to.be.below(300);
    await world.customer(hand);
    const line = { amount: '12.5', quantity: '5', display_name: 'advice' };
    const sums = { amount_due: '12.5', total: '12.5', subtotal: '12.5' };
    const customer_id = world.id(`customer ${hand}`);
    const invoice = { customer_id, currency: 'usd', ...sums, line_items: [line], invoice_status: 'FINALIZED' };
    const { id } = await world.post('/invoices', invoice);
    const byHand = await provenBy(world.api, id);
    expect((await check(byHand)).differences).to.deep.equal([]);
    agreeing.push(byHand);
    const kinds = byHand.proof.lines.map(kindOf);
    for (const name of [again, reached, changed, free])
      for (const { proof } of await agrees(name)) kinds.push(...proof.lines.map(kindOf));
    expect(kinds).to.include.members(['by hand', 'less', 'unused_time', 'allowance', 'late_events']);
  });

  function kindOf({ line: { computed_from: from } }: { line: ProofLine }): string | null {
    if (from === null) return 'by hand';
    return from.less ? 'less' : from.allowances ? 'allowance' : from.kind;
  }

  /** Every place of a document that is no list and no object, with what it says. */
  function leavesOf(value: unknown, path: readonly (string | number)[] = []): (readonly (string | number)[])[] {
    if (value === null || typeof value !== 'object') return [path];
    const keys = Array.isArray(value) ? [...value.keys()] : Object.keys(value);
    return keys.flatMap((key) => leavesOf(valueAt(value, [key]), [...path, key]));
  }

  const textOfPath = (path: readonly (string | number)[]) =>
    path
      .map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`))
      .join('')
      .slice(1);

  /** Otherwise than it was, also of another kind. */
  function otherwise(said: unknown, how: number, others: readonly unknown[]) {
    const [digit, ...more] = [
      typeof said === 'string' && /[0-9]/.test(said)
        ? said.replace(/[0-9](?=[^0-9]*$)/, (d) => String((+d + 3) % 10))
        : 'x',
      null,
      'nonsense',
      '7',
      typeof said === 'number' ? said + 1 : 1,
      said !== true,
      '2031-05-05T00:00:00Z',
      ...others,
    ];
    const choices = [digit, ...more].filter((one) => one !== said);
    return choices[how % choices.length];
  }

  it('has no field that is passed over: changed or taken out it is found out, or named as taken as stated', async () => {
    expect(agreeing.length).to.be.greaterThan(15);
    // Of another format it is no document that could be checked.
    const leaves = agreeing.flatMap(({ proof: { format: _format, ...proof } }, index) =>
      leavesOf(proof).map((path) => ({ index, path })),
    );
    const byField = groupBy(leaves, ({ path }) => path.map((key) => (typeof key === 'number' ? '' : key)).join('.'));
    // Each field in four ways, at places of documents that are drawn by chance.
    const draws = fc.tuple(fc.nat(), fc.nat(), fc.boolean());
    const unseen = new Set<string>();
    for (const places of some([...byField.values()]))
      for (const way of ['taken out', 'another digit', 'what another place says', 'anything'] as const) {
        const [place, how, hasEvents] = fc.sample(draws, 1)[0]!;
        const { index, path } = places[place % places.length]!;
        const { proof: honest, events } = agreeing[index]!;
        const proof = structuredClone(honest);
        const holder = valueAt(proof, path.slice(0, -1)) as Holder;
        const key = path.at(-1)!;
        const said = holder[key];
        const others = leaves
          .filter((one) => one.index === index && one.path.at(-1) === key)
          .map((one) => valueAt(honest, one.path))
          .filter((other) => other !== said);
        if (way === 'another digit') holder[key] = otherwise(said, 0, others);
        else if (way === 'what another place says' && others.length > 0) holder[key] = others[how % others.length];
        else if (way !== 'taken out') holder[key] = otherwise(said, how, others);
        else if (Array.isArray(holder)) holder.splice(Number(key), 1);
        else delete holder[key];
        // 1 and 1.0 are the same.
        if (isSameNumber(said, holder[key])) continue;
        const verdict = await verifier.verify(proof, hasEvents ? () => events : null);
        const isFound = verdict.differences.length > 0 || verdict.isStated(textOfPath(path));
        const what = `${textOfPath(path)}: ${JSON.stringify(said)} became ${JSON.stringify(holder[key])} (events: ${hasEvents})`;
        if (!isFound) unseen.add(what);
      }
    expect([...unseen].sort()).to.deep.equal([]);
  }).timeout(120_000);

  const isSameNumber = (a: unknown, b: unknown) =>
    typeof a === 'string' && typeof b === 'string' && a !== '' && b !== '' && Number(a) === Number(b);

  describe('that was changed in one place', () => {
    let proven: Proven;
    before(async () => {
      const name = newName();
      await january(name);
      [proven] = (await proofs(name)) as [Proven];
    });

    const changedDigit = (text: string, place: number) => {
      const digits = [...text.matchAll(/[0-9a-f]/g)].map(({ index }) => index);
      const index = digits[place % digits.length]!;
      const other = text[index] === '7' ? '3' : '7';
      return `${text.slice(0, index)}${other}${text.slice(index + 1)}`;
    };

    /** Every number of the document that says what was charged, and every root. */
    function placesOf(value: unknown, path: readonly string[] = []): string[][] {
      if (value === null || typeof value !== 'object') return isOfMoney(value, path) ? [[...path]] : [];
      return Object.entries(value).flatMap(([key, inner]) => placesOf(inner, [...path, key]));
    }

    function isOfMoney(value: unknown, path: readonly string[]): boolean {
      if (value === null) return false;
      const name = path.at(-1)!;
      const isIn = (key: string) => path.includes(key);
      // What a model does not charge by, and what is said for people.
      if (isIn('price') && name === 'amount') return ['FLAT_FEE', 'PACKAGE'].includes(priceAt(path).billing_model);
      if (isIn('tiers')) return name === 'unit_amount' && value !== '0';
      if (isIn('breakdown')) return ['units', 'unit_amount', 'flat_amount', 'amount'].includes(name);
      if (path[0] === 'invoice')
        return [
          'subtotal',
          'total',
          'total_tax',
          'total_discount',
          'amount_due',
          'amount_paid',
          'amount_remaining',
        ].includes(name);
      return ['amount', 'quantity', 'event_count', 'root', 'multiplier', 'minor_units'].includes(name);
    }

    function priceAt(path: readonly string[]) {
      return valueAt(proven.proof, path.slice(0, path.indexOf('price') + 1)) as { billing_model: string };
    }

    it('in any amount, quantity, count or root is found out', async () => {
      const places = placesOf(proven.proof);
      expect(places.length).to.be.greaterThan(60);
      for (const path of some(places)) {
        const proof = structuredClone(proven.proof);
        const holder = valueAt(proof, path.slice(0, -1)) as Holder;
        const key = path.at(-1)!;
        const said = holder[key];
        holder[key] = typeof said === 'number' ? said + 1 : changedDigit(said as string, fc.sample(fc.nat(100), 1)[0]!);
        // A tier that no unit reached decides about nothing.
        if (key === 'unit_amount' && path.includes('tiers') && !isFilled(path)) continue;
        const { differences } = await check({ ...proven, proof });
        expect(differences, `${path.join('.')}: ${said} was changed to ${holder[key]}`).to.not.deep.equal([]);
      }
    });

    function isFilled(path: readonly string[]): boolean {
      const from = proven.proof.lines[Number(path[1])]!.line.computed_from;
      return from!.breakdown!.some(({ tier }) => tier === Number(path[path.indexOf('tiers') + 1]));
    }

    const changes: Record<string, (event: SentEvent, digit: number) => object> = {
      'another id': (event) => ({ ...event, event_id: `${event.event_id}x` }),
      'another time': (event) => ({ ...event, timestamp: event.timestamp.replace('Z', '.000001Z') }),
      'another customer': (event) => ({ ...event, external_customer_id: 'somebody' }),
      'another value': ({ properties, ...event }, digit) => ({
        ...event,
        properties: { ...properties, n: changedDigit(String(properties.n), digit), who: 'other' },
      }),
      'one more unit': ({ properties, ...event }) => ({
        ...event,
        properties: { ...properties, n: Number(properties.n) + 1 },
      }),
    };

    it('in any event, its time, its customer or its value is found out', async () => {
      for (const [which, text] of proven.events.entries())
        for (const [what, change] of some(Object.entries(changes))) {
          const changed = JSON.stringify(change(JSON.parse(text), fc.sample(fc.nat(20), 1)[0]!));
          const { differences } = await check({ ...proven, events: proven.events.with(which, changed) });
          expect(differences, `${what} of ${text}`).to.not.deep.equal([]);
        }
    });

    it('by an event that is missing, or there twice, is found out', async () => {
      for (const [index, text] of proven.events.entries()) {
        const missing = proven.events.toSpliced(index, 1);
        expect((await check({ ...proven, events: missing })).differences).to.not.deep.equal([]);
        const twice = proven.events.toSpliced(index, 0, text);
        expect((await check({ ...proven, events: twice })).differences).to.not.deep.equal([]);
      }
    });
  });
});
