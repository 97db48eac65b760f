/**
 * docs/integrations/README.md as a story: a year of subscriptions whose invoices are paid through Stripe, with everything that customers, the
 * tenant and people at Stripe do to them. At the end of each month both sides agree about each invoice and about the money, or a person is
 * informed why they do not.
 */
import { expect } from 'chai';
import { type Difference, listDifferences, listReasons } from '../support/both-sides.ts';
import { StripeFake } from '../support/providers/stripe-fake.ts';
import { createChance, seedsToRun } from '../support/seeds.ts';
import { holdMachineClock, type StripeWorld, startStripeWorld } from '../support/stripe-world.ts';
import { StripeYear } from '../support/stripe-year.ts';

const DAY_MS = 86_400_000;
const MONTHS = 12;
const ACCIDENTS_A_MONTH = 4;
/** Differences that nobody but a person can resolve, as the mappings and payments name them. */
const EXPECTED: readonly RegExp[] = [
  /^payment pi_\d+ of [\d.]+ usd at stripe pays an invoice that is VOIDED$/,
  /of payment \w+ was refunded at stripe, but is given back here already$/,
  /^the invoice is (void|uncollectible|paid) at stripe, but [\d.]+ is open$/,
  /^the invoice \w+ is (paid|void) at Stripe, so the payment of [\d.]+ usd is not counted there$/,
  /^the invoice \w+ is paid at Stripe, so it cannot be voided$/,
  /^payment \w+ is VOIDED here, but counted at the provider$/,
  /^Stripe: You can(not| only) (attach|void|credit)/,
  /^Stripe: Payments cannot be attached to an invoice that is/,
  /remains to be paid here, but [\d.]+ at the provider: correct it there$/,
  /does not fit the invoice \w+, of which [\d.]+ remains at Stripe$/,
  /were refunded, of which the price was [\d.]+: correct the invoice at the provider$/,
];
const isExpected = (reason: string) => EXPECTED.some((known) => known.test(reason));

for (const seed of seedsToRun(1))
  describe(`a year through Stripe, seed ${seed}`, () => {
    const chance = createChance(seed);
    const happened = new Map<string, number>();
    let fake: StripeFake;
    let there: StripeWorld;
    let year: StripeYear;
    let releaseClock: () => void;

    before(async () => {
      fake = await new StripeFake().start();
      const now = '2025-01-01T00:00:00Z';
      releaseClock = holdMachineClock(now, () => fake.requests.length);
      there = await startStripeWorld(fake, { now, chance });
      year = new StripeYear(there, chance);
      await year.begin();
    });
    after(async () => {
      releaseClock();
      await there.stop();
    });

    const perform = async (name: string, deed: () => Promise<boolean>) => {
      const isDone = await deed();
      if (isDone) happened.set(name, (happened.get(name) ?? 0) + 1);
      return isDone;
    };
    const table = (name: string) => there.world.api.services.postgres(name);

    const checkBothSides = async () => {
      const { services } = there.world.api;
      const isUnexplained = ({ reasons }: Difference) => !reasons.some(isExpected);
      const unexplained = (await listDifferences(services, fake)).filter(isUnexplained);
      const ids = unexplained.map(({ invoice_id }) => invoice_id);
      expect(unexplained, year.describe(ids)).to.deep.equal([]);
      const reasons = await listReasons(services);
      expect(reasons.filter((reason) => !isExpected(reason))).to.deep.equal([]);
      expect(await there.audit()).to.deep.equal([]);
      const waiting = await table('integration_mappings')
        .whereNotNull('pending_since')
        .whereNot('mapping_state', 'gone');
      expect(waiting, 'records that wait to be sent').to.deep.equal([]);
      expect(await table('provider_events').where({ event_state: 'failed' })).to.deep.equal([]);
    };

    let deck: string[] = [];
    /** Accidents come in an order of the seed. One to which nothing could be done comes again in the next month. */
    const drawAccidents = () => {
      if (deck.length < ACCIDENTS_A_MONTH) deck = [...deck, ...chance.shuffled(Object.keys(year.accidents))];
      return deck.splice(0, ACCIDENTS_A_MONTH);
    };

    it('leaves no difference of which nobody is informed', async function () {
      this.timeout(900_000);
      for (let month = 1; month <= MONTHS; month++) {
        const end = new Date(Date.UTC(2025, month, 1));
        await year.use();
        const drawn = drawAccidents();
        const deeds = chance.shuffled([
          ...Object.entries(year.payers),
          ...drawn.map((name) => [name, year.accidents[name]!] as const),
        ]);
        for (const [index, [name, deed]] of deeds.entries()) {
          const left_ms = end.getTime() - 3 * DAY_MS - there.now.getTime();
          await there.passTo(new Date(there.now.getTime() + Math.max(60_000, left_ms / (deeds.length - index))), 0);
          if (!(await perform(name, deed)) && name in year.accidents) deck.push(name);
        }
        fake.clearDisturbances();
        await there.passTo(new Date(end.getTime() - 60_000), 2);
        await checkBothSides();
        await there.passTo(end, 0);
      }
      await there.receiveAll();
      await checkBothSides();
    });

    it('has everything in it', async () => {
      const missing = Object.keys({ ...year.payers, ...year.accidents }).filter((name) => !happened.has(name));
      expect(missing).to.deep.equal([]);
      const automatic = await table('payments').where({ is_automatic: true, payment_status: 'SUCCEEDED' });
      expect(
        automatic.some(({ attempt_count }) => attempt_count === 1),
        'charges off session',
      ).to.equal(true);
      expect(
        automatic.some(({ attempt_count }) => attempt_count > 1),
        'charges by the retry schedule',
      ).to.equal(true);
    });

    it('has stored each event once, and reported each dispute', async () => {
      const stored = await table('provider_events').select('provider_event_id');
      const sent = fake.events.map(({ id }) => id);
      expect(stored.map(({ provider_event_id }) => provider_event_id)).to.include.members(sent);
      expect(stored).to.have.length(sent.length + happened.get('an event of another company arrives')!);
      const reports = await table('system_events').where({ event_name: 'payment.disputed' });
      const disputes = reports.map(({ payload }) => payload.dispute.provider_entity_id);
      expect(disputes).to.have.members(fake.book.list('dispute').map(({ id }) => id));
    });
  });
