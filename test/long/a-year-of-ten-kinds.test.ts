/**
 * A year of thirteen customers of ten kinds, in an environment with a clock of its own. Each account is a golden file that reads like
 * a statement (test/golden/years); what it comes to is computed by hand beside its story (years/).
 */
import { expect } from 'chai';
import { mapConcurrently } from '../../storage/concurrency/batch-loader.ts';
import { buildAccount } from '../support/account.ts';
import { expectGolden } from '../support/golden.ts';
import { check, provenBy } from '../support/verifier.ts';
import { startWorld, type World } from '../support/world.ts';
import { catalogue } from './years/catalogue.ts';
import { stories } from './years/stories.ts';
import type { Deed, Story, Used } from './years/story.ts';

const START = '2028-01-01T00:00:00Z';
const END = '2029-03-01T12:00:00Z';
const NAMES = ['ada', 'berta', 'carl', 'dora', 'emil', 'fred', 'frida', 'fritz', 'gina', 'hugo', 'ida', 'jan', 'kurt'];

describe('a year of ten kinds of customers', () => {
  let world: World;
  let all: Story[];

  before(async function () {
    this.timeout(300_000);
    world = await startWorld({ now: START, test_clock: true });
    all = stories(await catalogue(world));
    const used = all.flatMap((story) => story.used.map((one) => ({ story, one })));
    const names = [...all.flatMap(({ name, others = [] }) => [name, ...others]), 'north', 'south'];
    for (const name of names) await world.customer(name);
    await world.send(
      used.map(({ story, one: [at, meter, n, who] }) => world.event(who ?? story.name, meter, { n, at: instant(at) })),
    );
    for (const [at, , done] of inOrder(all)) await world.on(at, () => done(world));
    await world.on(END);
  });
  after(() => world.stop());

  for (const name of NAMES)
    it(name, async () => {
      const story = all.find((one) => one.name === name)!;
      const { text, invoiced, credit_adjustments } = await buildAccount(
        world,
        [name, ...(story.others ?? [])],
        told(story),
      );
      expectGolden(`years/${name}.md`, `# ${story.title}\n\n\`\`\`\n${text}\n\`\`\`\n`);
      expect([invoiced, credit_adjustments]).to.deep.equal([story.invoiced, story.credit_adjustments ?? '0']);
    });

  it('whoever gets one of their invoices can check it', async function () {
    this.timeout(120_000);
    const found: unknown[] = [];
    // Each takes some questions to the stores; all of them would take longer than the year.
    const some = (await finalInvoices(world)).filter((_id, index) => index % 6 === 0);
    await mapConcurrently(4, some, async (id) => {
      const { differences } = await check(await provenBy(world.api, id));
      if (differences.length > 0) found.push({ id, differences });
    });
    expect(found).to.deep.equal([]);
  });

  it('every story is one of them', () => expect(all.map(({ name }) => name)).to.deep.equal(NAMES));
});

async function finalInvoices(world: World): Promise<string[]> {
  const ids: string[] = [];
  for (let offset = 0; ; offset += 1000) {
    const invoice_status = ['FINALIZED', 'SKIPPED', 'VOIDED'];
    const { items } = await world.post('/invoices/search', { invoice_status, limit: 1000, offset });
    ids.push(...items.map(({ id }: { id: string }) => id));
    if (items.length < 1000) return ids;
  }
}

/** The deeds of all by date; of one date in the order of the stories. */
function inOrder(all: readonly Story[]): Deed[] {
  return all.flatMap(({ deeds }) => deeds).toSorted(([a], [b]) => instant(a).localeCompare(instant(b)));
}

function told({ name, deeds, used }: Story) {
  const uses = used.map(([at, meter, n, who]: Used) => ({
    at: instant(at),
    text: `${who ?? name} uses ${n} ${meter}`,
  }));
  return [...deeds.map(([at, said]) => ({ at: instant(at), text: `${name}: ${said}` })), ...uses];
}

function instant(at: string): string {
  return at.length === 10 ? `${at}T00:00:00Z` : at;
}
