/**
 * docs/integrations/README.md as a story: a year of invoices of one customer at each of four providers at once, with payments, refunds and
 * credit notes on both sides, and with answers and webhooks that are lost. At the end of each month the books agree to the minor unit.
 */
import { expect } from 'chai';
import { Decimal, sumDecimals } from '../../core/foundation/decimal.ts';
import { PROVIDER_DOUBLES } from '../support/providers/doubles.ts';
import { type Books, listFinal, ProvidersYear } from '../support/providers-year.ts';
import { createChance, seedsToRun } from '../support/seeds.ts';
import { holdMachineClock } from '../support/stripe-world.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const MONTHS = 12;
const DEEDS_A_MONTH = 2;
const PROVIDERS = ['stripe', 'paddle', 'quickbooks', 'zoho_books'].filter((name) => name in PROVIDER_DOUBLES);
/** Interval between requests at the lowest limit of the four. */
const PACE_MS = 1_000;

/** What only a person can do at a provider. */
const EXPECTED = [/^the invoice \w+ has payments or credits at Zoho Books, so it cannot be voided$/];

for (const seed of seedsToRun(1))
  describe(`a year through ${PROVIDERS.join(', ')}, seed ${seed}`, () => {
    const chance = createChance(seed);
    const doubles = PROVIDERS.map((name) => PROVIDER_DOUBLES[name]!());
    let year: ProvidersYear;
    let releaseClock: () => void;

    before(async () => {
      for (const { fake } of doubles) await fake.start();
      const now = '2025-01-01T00:00:00Z';
      const countRequests = () => doubles.reduce((sum, { fake }) => sum + fake.requests.length, 0);
      releaseClock = holdMachineClock(now, countRequests, PACE_MS);
      year = await ProvidersYear.begin(doubles, { now, chance });
    });
    after(async () => {
      releaseClock();
      await year?.stop();
    });

    const passTo = async (instant: Date) => {
      await year.at(instant);
      await year.work();
    };

    /** The remaining amounts of the invoices here and of their copies there, and the reasons for a person. */
    const compare = async (books: Books) => {
      const invoices = await listFinal(books);
      const here = invoices.map(({ amount_remaining }) => new Decimal(amount_remaining));
      const there = invoices.map(({ id }) => {
        const copies = books.there.listCopies(id).filter(({ status }) => status !== 'void');
        expect(copies.length, id).to.be.at.most(1);
        return new Decimal(copies[0]?.status === 'open' ? copies[0].remaining : 0);
      });
      const differing = invoices.flatMap(({ id }, index) => (here[index]!.equals(there[index]!) ? [] : [id]));
      const told = await books.account.api.services
        .postgres('integration_mappings')
        .where(books.account.api.scope)
        .where((any) => void any.whereNotNull('attention_reason').orWhereNotNull('push_error'))
        .select('entity_id', 'attention_reason', 'push_error');
      const unexpected = told.filter(({ push_error }) => !EXPECTED.some((known) => known.test(push_error)));
      return { differing, unexpected, here: sumDecimals(here).toFixed(), there: sumDecimals(there).toFixed() };
    };

    it('the books agree at the end of each month', async function () {
      this.timeout(900_000);
      for (let month = 1; month <= MONTHS; month++) {
        const end = new Date(Date.UTC(2025, month, 1));
        await passTo(new Date(year.now.getTime() + HOUR_MS));
        await passTo(new Date(year.now.getTime() + 2 * HOUR_MS));
        await year.use();
        for (let deeds = 0; deeds < DEEDS_A_MONTH; deeds++) {
          await passTo(new Date(year.now.getTime() + 5 * DAY_MS));
          await year.act();
        }
        for (const { there } of year.books) there.fake.clearDisturbances();
        for (let days = 1; days <= 3; days++) await passTo(new Date(year.now.getTime() + DAY_MS + HOUR_MS));
        for (const books of year.books) {
          const { differing, unexpected, here, there } = await compare(books);
          expect({ differing, unexpected }, `${books.name}: ${year.describe(differing)}`).to.deep.equal({
            differing: [],
            unexpected: [],
          });
          expect(there, books.name).to.equal(here);
        }
        await passTo(end);
      }
    });

    it('has everything in it', () => {
      expect([...year.happened.keys()]).to.have.length.above(6);
    });
  });
