/** The reference model of usage over a change, held against every number that its rule gives. */
import { expect } from 'chai';
import { buildChains, chainsByModel, type ModelChained, type ModelChainLine } from '../../support/chain-model.ts';
import type { ModelTerms } from '../../support/invoice-model.ts';
import { type ModelEvent, type ModelMeter, microseconds } from '../../support/reference-model.ts';

const JANUARY = { start: '2026-01-01T00:00:00Z', end: '2026-02-01T00:00:00Z' };

type Aggregation = ModelMeter['aggregation'];

const flat = (amount: string): ModelTerms => ({ model: 'FLAT_FEE', amount });
const meter = (type: Aggregation['type'], fields: Partial<Aggregation> = {}): ModelMeter => ({
  event_name: 'use',
  aggregation: { type, field: 'n', ...fields },
});

let sent = 0;
/** `[when, n]`; a day alone is its midnight. */
function events(...all: [string, number | string][]): ModelEvent[] {
  return all.map(([at, n]) => ({
    event_id: `e${++sent}`,
    event_name: 'use',
    external_customer_id: 'acme',
    timestamp: instant(at),
    properties: { n },
  }));
}

function instant(at: string): string {
  return at.length === 10 ? `${at}T00:00:00Z` : `${at}:00Z`;
}

/** One event a day, from the first to the last. */
function daily(n: number, first = 1, last = 31): ModelEvent[] {
  const days = Array.from({ length: last - first + 1 }, (_, index) => String(first + index).padStart(2, '0'));
  return events(...days.map((day): [string, number] => [`2026-01-${day}T01:00`, n]));
}

/** Lines one after the other; each begins where the one before it ends. */
function follow(starts: [string, ModelTerms][], end = '2026-02-01', source = 'plan'): ModelChainLine[] {
  return starts.map(([start, terms], index) => ({
    name: String.fromCharCode(97 + index),
    source,
    start: instant(start),
    end: instant(starts[index + 1]?.[0] ?? end),
    terms,
  }));
}

function charge(given: Omit<ModelChained, 'period'> & { period?: ModelChained['period'] }, sent: ModelEvent[]) {
  const chains = chainsByModel({ period: JANUARY, ...given }, sent);
  expect(chains).to.have.length(1);
  return [...chains[0]!.lines.map(({ amount }) => amount), chains[0]!.total];
}

describe('the reference model of usage over a change', () => {
  const halves = (before: string, after: string) =>
    follow([
      ['2026-01-01', flat(before)],
      ['2026-01-16', flat(after)],
    ]);

  describe('additive', () => {
    it('charges an event by the line in force at its time', () =>
      expect(
        charge(
          { meter: meter('SUM', { bucket_size: 'MONTH' }), lines: halves('0.01', '0.02') },
          events(['2026-01-10', 31000]),
        ),
      ).to.deep.equal(['310', '0', '310']));

    it('takes a run below 0 off the runs before it', () =>
      expect(
        charge({ meter: meter('SUM'), lines: halves('1', '2') }, events(['2026-01-10', 10], ['2026-01-20', -5])),
      ).to.deep.equal(['10', '-5', '5']));

    it('takes it off the latest first, and of what then lacks off later ones', () => {
      const lines = follow([
        ['2026-01-01', flat('1')],
        ['2026-01-05', flat('2')],
        ['2026-01-10', flat('3')],
        ['2026-01-15', flat('4')],
      ]);
      const used = events(['2026-01-02', 4], ['2026-01-06', 2], ['2026-01-11', -3], ['2026-01-16', 5]);
      expect(charge({ meter: meter('SUM'), lines }, used)).to.deep.equal(['4', '4', '-5', '20', '23']);
      const owed = events(['2026-01-02', 1], ['2026-01-06', 2], ['2026-01-11', -5], ['2026-01-16', 5]);
      expect(charge({ meter: meter('SUM'), lines }, owed)).to.deep.equal(['1', '4', '-5', '12', '12']);
    });

    const TIERED: ModelTerms = {
      model: 'SLAB',
      tiers: [
        { up_to: 10, unit_amount: '1' },
        { up_to: null, unit_amount: '0.1' },
      ],
    };

    it('tiers go on over a change to equal terms, written as other numbers', () => {
      const equal: ModelTerms = {
        model: 'SLAB',
        tiers: [
          { up_to: 10, unit_amount: '1.00', flat_amount: '0' },
          { up_to: null, unit_amount: '0.10' },
        ],
      };
      const lines = follow([
        ['2026-01-01', TIERED],
        ['2026-01-16', equal],
      ]);
      const used = events(['2026-01-10', 8], ['2026-01-20', 6]);
      expect(charge({ meter: meter('SUM'), lines }, used)).to.deep.equal(['8', '2.4', '10.4']);
    });

    it('tiers begin again in A, B, A', () => {
      const lines = follow([
        ['2026-01-01', TIERED],
        ['2026-01-11', flat('3')],
        ['2026-01-21', TIERED],
      ]);
      const used = events(['2026-01-10', 15], ['2026-01-12', 1], ['2026-01-25', 15]);
      expect(charge({ meter: meter('SUM'), lines }, used)).to.deep.equal(['10.5', '3', '10.5', '24']);
    });

    it('parts are differences of rounded costs', () => {
      const lines = follow([
        ['2026-01-01', flat('0.004')],
        ['2026-01-11', flat('0.004')],
        ['2026-01-21', flat('0.003')],
      ]);
      const used = events(['2026-01-10', 1], ['2026-01-12', 1], ['2026-01-25', 1]);
      expect(charge({ meter: meter('SUM'), lines }, used)).to.deep.equal(['0', '0.01', '0', '0.01']);
    });

    it('packages go on, and the units that are free are those used first', () => {
      const terms: ModelTerms = { model: 'PACKAGE', amount: '5', divide_by: 100, round: 'up' };
      const lines = follow([
        ['2026-01-01', terms],
        ['2026-01-16', terms],
      ]);
      const used = events(['2026-01-10', 90], ['2026-01-20', 60]);
      expect(charge({ meter: meter('SUM'), lines, free: '40' }, used)).to.deep.equal(['5', '5', '10']);
    });
  });

  describe('peaks, levels and sets', () => {
    for (const type of ['COUNT_UNIQUE', 'MAX', 'LATEST', 'AVG'] as const)
      it(`${type}: one user in both halves`, () =>
        expect(
          charge({ meter: meter(type), lines: halves('10', '11') }, events(['2026-01-10', 1], ['2026-01-20', 1])),
        ).to.deep.equal(['4.84', '5.68', '10.52']));

    it('a day that is cut at noon is measured once', () => {
      const cut = (after: string) =>
        follow([
          ['2026-01-01', flat('1')],
          ['2026-01-16T12:00', flat(after)],
        ]);
      const peak = meter('MAX', { bucket_size: 'DAY' });
      const twice = daily(10).flatMap((event) => [
        event,
        { ...event, event_id: `${event.event_id} later`, timestamp: event.timestamp.replace('T01', 'T20') },
      ]);
      for (const sent of [daily(10), twice]) {
        expect(charge({ meter: peak, lines: cut('1') }, sent).at(-1)).to.equal('310');
        expect(charge({ meter: peak, lines: cut('2') }, sent)).to.deep.equal(['155', '310', '465']);
      }
    });

    it('says the same on the 17th, at the end, and where the subscription ends on the 20th', () => {
      const used = events(['2026-01-10', 10]);
      const changed = { meter: meter('MAX'), lines: halves('10', '1') };
      expect(charge(changed, used)).to.deep.equal(['48.39', '5.16', '53.55']);
      const until20 = follow(
        [
          ['2026-01-01', flat('10')],
          ['2026-01-16', flat('1')],
        ],
        '2026-01-20',
      );
      expect(charge({ ...changed, lines: until20 }, used).at(-1)).to.equal('53.55');
      const cut = { start: JANUARY.start, end: instant('2026-01-20') };
      expect(charge({ ...changed, lines: until20, period: cut, whole: JANUARY }, used).at(-1)).to.equal('53.55');
    });

    it('an add-on has a peak of its own, and is not prorated', () => {
      const lines = [
        ...follow([['2026-01-01', flat('1')]]),
        ...follow([['2026-01-16', flat('10')]], '2026-02-01', 'addon'),
      ];
      const chains = chainsByModel(
        { meter: meter('MAX'), period: JANUARY, lines },
        events(['2026-01-10', 20], ['2026-01-20', 10]),
      );
      expect(chains.map(({ total }) => total)).to.deep.equal(['20', '100']);
    });

    it('a gap counts to the line before it, and nothing is measured in it', () => {
      const lines = [
        ...follow([['2026-01-01', flat('10')]], '2026-01-11'),
        ...follow([['2026-01-21', flat('20')]]).map((line) => ({ ...line, name: 'b' })),
      ];
      const used = events(['2026-01-05', 31], ['2026-01-15', 1000], ['2026-01-25', 1]);
      expect(charge({ meter: meter('MAX'), lines }, used)).to.deep.equal(['200', '220', '420']);
    });
  });

  describe('WEIGHTED_SUM', () => {
    const stored = meter('WEIGHTED_SUM');
    const put = events(['2026-01-01', 10]);

    it('10 GB all month, $31, then $62', () =>
      expect(charge({ meter: stored, lines: halves('31', '62') }, put)).to.deep.equal(['150', '320', '470']));

    it('gone on the 20th, at equal prices', () =>
      expect(
        charge({ meter: stored, lines: halves('31', '31') }, [...put, ...events(['2026-01-20', -10])]),
      ).to.deep.equal(['150', '40', '190']));

    it('cancelled on the 16th', () => {
      const lines = follow([['2026-01-01', flat('31')]], '2026-01-16');
      const period = { start: JANUARY.start, end: instant('2026-01-16') };
      expect(charge({ meter: stored, lines, period, whole: JANUARY }, put)).to.deep.equal(['150', '150']);
    });

    it('never reset: 10 GB put in once are $310 every month', () => {
      const since = instant('2025-12-01');
      const before = events(['2025-12-10', 10]);
      const lines = follow([['2026-01-01', flat('31')]]);
      expect(charge({ meter: stored, lines, since }, before)).to.deep.equal(['310', '310']);
      expect(charge({ meter: stored, lines }, before)).to.deep.equal(['0', '0']);
    });

    it('the level that stands when the chain begins counts from there', () =>
      expect(
        charge({ meter: stored, lines: follow([['2026-01-16', flat('31')]]) }, events(['2026-01-10', 10])),
      ).to.deep.equal(['160', '160']));

    it('a run below 0 has no share', () => {
      const sent = events(['2026-01-01', -10], ['2026-01-16', 41]);
      // (−150 + 31 × 16) / 31 = 346 / 31 GB-months, all of them at the second price.
      expect(charge({ meter: stored, lines: halves('31', '62') }, sent)).to.deep.equal(['0', '692', '692']);
    });

    it('who leaves takes their level with them', () => {
      const members = [{ customer: 'acme', to: instant('2026-01-11') }];
      expect(charge({ meter: stored, members, lines: halves('31', '62') }, put)).to.deep.equal(['100', '0', '100']);
    });
  });

  it('puts each line into the chain that ended last at or before its begin', () => {
    const line = (name: string, from: number, to: number, source = 'plan'): ModelChainLine => {
      const day = (date: number) => instant(`2026-01-${String(date).padStart(2, '0')}`);
      return { name, source, start: day(from), end: day(to), terms: flat('1') };
    };
    const lines = [
      line('a', 1, 10),
      line('beside', 1, 12),
      line('after a', 10, 11),
      line('after beside', 12, 20),
      line('after the gap', 13, 14),
      line('of no length', 14, 14),
      line('of an add-on', 20, 25, 'addon'),
    ];
    const period = { start: microseconds(JANUARY.start), end: microseconds(JANUARY.end) };
    const chains = buildChains(lines, period).map((chain) => chain.map(({ name }) => name));
    expect(chains).to.deep.equal([['a', 'after a', 'after the gap'], ['beside', 'after beside'], ['of an add-on']]);
  });
});
