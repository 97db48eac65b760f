import { expect } from 'chai';
import { differences } from './compare.ts';
import { parseExamples } from './parse-examples.ts';

const MARKDOWN = [
  '# Title',
  '| not | an example |',
  '## area.one',
  'op `first.op` — common: `{"currency":"usd"}`',
  '',
  '- @a = `{"x":"1|2"}`',
  '',
  '| id | thing | given | n | → out | → expect | tol | note |',
  '|---|---|---|---|---|---|---|---|',
  '| e-1 | @a | `{"q":[1,2]}` | 5.50 | true | `{"total":"3"}` | 0.01 | text |',
  '| e-2 | `"a|b"` |  | null | >=5 |  |  |  |',
  '',
  'op `second.op`',
  '',
  '| id | a | → b |',
  '|---|---|---|',
  '| e-3 | 1 | `["x"]` |',
].join('\n');

describe('parse worked examples', () => {
  const examples = parseExamples(MARKDOWN);

  it('reads areas, operations, common arguments, aliases, objects and tolerances', () => {
    expect(examples[0]).to.deep.equal({
      area: 'area.one',
      op: 'first.op',
      id: 'e-1',
      given: { currency: 'usd', thing: { x: '1|2' }, q: [1, 2], n: '5.50' },
      expected: { out: true, total: '3' },
      tolerance: '0.01',
    });
  });

  it('keeps bars inside backticks, knows null, and leaves empty cells out', () => {
    expect(examples[1]?.given).to.deep.equal({ currency: 'usd', thing: 'a|b', n: null });
    expect(examples[1]?.expected).to.deep.equal({ out: '>=5' });
  });

  it('starts anew at the next operation', () => {
    expect(examples[2]).to.deep.include({ op: 'second.op', given: { a: '1' }, expected: { b: ['x'] } });
    expect(examples).to.have.length(3);
  });

  it('refuses an alias that does not exist', () => {
    expect(() => parseExamples(MARKDOWN.replace('| @a |', '| @b |'))).to.throw('unknown alias @b');
  });
});

describe('compare with an example', () => {
  const rows: [string, unknown, unknown, string | undefined, boolean][] = [
    ['money as numbers', '0.50', '0.5', undefined, true],
    ['another amount', '0.50', '0.51', undefined, false],
    ['within tolerance', '0.50', '0.51', '0.01', true],
    ['beyond tolerance', '0.50', '0.52', '0.01', false],
    ['instants', '2024-01-01T00:00:00Z', '2024-01-01T00:00:00.000Z', undefined, true],
    ['other instants', '2024-01-01T00:00:00Z', '2024-01-01T00:00:01Z', undefined, false],
    ['a bound kept', '>=5', '5', undefined, true],
    ['a bound broken', '>5', '5', undefined, false],
    ['lists', ['1', '2.0'], ['1.0', '2'], undefined, true],
    ['a longer list', ['1'], ['1', '2'], undefined, false],
    ['the keys named', { a: '1' }, { a: '1.0', b: '2' }, undefined, true],
    ['a key missing', { a: '1' }, { b: '2' }, undefined, false],
    ['null', null, null, undefined, true],
    ['null is not nothing', null, undefined, undefined, false],
    ['booleans', false, false, undefined, true],
    ['text is not false', false, 'false', undefined, false],
  ];
  for (const [name, expected, actual, tolerance, same] of rows) {
    it(`${name}: ${same ? 'same' : 'different'}`, () => {
      expect(differences({ out: expected }, { out: actual }, tolerance)).to.have.length(same ? 0 : 1);
    });
  }

  it('takes the exact amount where the example shows more digits than the rounded one', () => {
    const answer = { amount: '1.24', amount_exact: '1.235' };
    expect(differences({ amount: '1.24' }, answer)).to.be.empty;
    expect(differences({ amount: '1.235' }, answer)).to.be.empty;
    expect(differences({ amount: '1.23' }, answer)).to.have.length(1);
  });
});
