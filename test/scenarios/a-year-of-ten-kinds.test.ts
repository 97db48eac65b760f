/**
 * A year of thirteen customers of ten kinds, in an environment with a clock of its own. Each account is a golden file that reads like
 * a statement (test/golden/years); what it comes to is computed by hand beside its story (years/).
 */
import { expect } from 'chai';
import { accountOf } from '../support/account.ts';
import { expectGolden } from '../support/golden.ts';
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
      const { text, invoiced, given_back } = await accountOf(world, [name, ...(story.others ?? [])], told(story));
      expectGolden(`years/${name}.md`, `# ${story.title}\n\n\`\`\`\n${text}\n\`\`\`\n`);
      expect([invoiced, given_back]).to.deep.equal([story.invoiced, story.given_back ?? '0']);
    });

  it('every story is one of them', () => expect(all.map(({ name }) => name)).to.deep.equal(NAMES));
});

/** The deeds of all by date; of one date in the order of the stories. */
function inOrder(all: readonly Story[]): Deed[] {
  return all.flatMap(({ deeds }) => deeds).toSorted(([a], [b]) => instant(a).localeCompare(instant(b)));
}

function told({ name, deeds, used }: Story) {
  const uses = used.map(([at, meter, n, who]: Used) => ({
    at: instant(at),
    said: `${who ?? name} uses ${n} ${meter}`,
  }));
  return [...deeds.map(([at, said]) => ({ at: instant(at), said: `${name}: ${said}` })), ...uses];
}

function instant(at: string): string {
  return at.length === 10 ? `${at}T00:00:00Z` : at;
}
