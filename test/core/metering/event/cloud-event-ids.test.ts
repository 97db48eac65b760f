/** What a CloudEvent is known by (docs/rules/events.md, "CloudEvents"): of two that differ in source or id none is taken for the other. */
import { expect } from 'chai';
import fc from 'fast-check';
import { fromCloudEvent } from '../../../../core/metering/event/cloud-event.ts';
import { samples } from '../../../support/samples.ts';

const FIELD = { specversion: '1.0', type: 'call', subject: 'acme' };

function idOf(source: string, id: string): string | null {
  const made = fromCloudEvent({ attributes: { ...FIELD, source, id }, data: undefined });
  if ('fault' in made) return null;
  return JSON.parse(Buffer.from(made.text, 'latin1').toString()).event_id;
}

/** Few letters, so that pairs meet: `a b` and `c`, `a` and `b c`. */
const text = fc
  .array(fc.constantFrom('a', 'b', '/', ' ', '%20', '\t', '\u00a0', '"', '\\', 'é', '+'), {
    minLength: 1,
    maxLength: 5,
  })
  .map((parts) => parts.join(''));

describe('core: ids of CloudEvents', () => {
  it('two pairs of source and id that are taken have two ids', () => {
    const pair = fc.tuple(text, text);
    fc.assert(
      fc.property(pair, pair, (one, other) => {
        const [first, second] = [idOf(...one), idOf(...other)];
        if (first === null || second === null) return;
        expect(first === second, JSON.stringify([one, other])).to.equal(one[0] === other[0] && one[1] === other[1]);
      }),
      { numRuns: samples(20_000) },
    );
  });

  for (const source of ['a b', ' a', 'a ', 'a\tb', 'a\u00a0b', 'a\nb'])
    it(`a source with a blank is refused: ${JSON.stringify(source)}`, () => expect(idOf(source, 'c')).to.equal(null));

  it('the same letters cut elsewhere: the blank of an id is not that behind a source', () => {
    expect([idOf('a', 'b c'), idOf('a', ' b'), idOf('a', 'b')]).to.deep.equal(['a b c', 'a  b', 'a b']);
    expect(idOf('a b', 'c')).to.equal(null);
  });
});
