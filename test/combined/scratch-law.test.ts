import { expect } from 'chai';
import { drawChanged, KINDS, MEASURES, modelAmounts } from '../support/changed-usage.ts';
import { chanceOf } from '../support/seeds.ts';
import { expectedAt, liveThrough } from '../support/usage-over-changes.ts';
describe('scratch', () => {
  it('all', async function () {
    this.timeout(500_000);
    const chance = chanceOf(Number(process.env.SEED ?? 1));
    const kinds = (process.env.K ?? KINDS.join()).split(',');
    const measures = MEASURES.filter(({ name }) => (process.env.M ?? 'sum').split(',').includes(name));
    const models = (process.env.T ?? 'FLAT_FEE').split(',');
    const all = kinds.flatMap((kind: any) => measures.flatMap((measure) => models.map((model: any) => drawChanged(chance, { name: `${measure.name} ${model} ${kind}`, kind, measure, model }))));
    console.log(all.length, modelAmounts(all[0]!));
    const t = Date.now();
    const stated = await liveThrough(all);
    console.log('lived', Date.now() - t);
    let bad = 0;
    for (const one of all) {
      const found = stated.get(one.name)!;
      const want = expectedAt(found, one);
      const wrong = Object.keys(found).filter((d) => JSON.stringify(found[d]) !== JSON.stringify(want[d]));
      console.log(wrong.length ? 'BAD' : 'ok', one.name, one.timezone, one.start.slice(8, 13), one.cuts.map((c) => `${c.at.slice(8, 16)} ${JSON.stringify((c.terms as any).amount ?? c.terms.model)}`).join(' | '));
      if (wrong.length) bad++;
      for (const d of wrong) console.log('    ', d, found[d]!.join(' ; ').slice(0, 300), ' WANT ', want[d]!.join(' ; '));
    }
    expect(bad).to.equal(0);
  });
});
