import { expect } from 'chai';
import { orderHits, parseSearchTerm, type RankedHit } from '../../../../core/platform/search/term.ts';

describe('a search text', () => {
  it('has literal signs in the patterns', () => {
    const { text, lower, prefix, contains } = parseSearchTerm('50%_A\\b');
    expect([text, lower]).to.deep.equal(['50%_A\\b', '50%_a\\b']);
    expect([prefix, contains]).to.deep.equal(['50\\%\\_a\\\\b%', '%50\\%\\_a\\\\b%']);
  });

  const ids: [string, string | null, string?, string?][] = [
    [
      'cust_01JZ8K3M5N7P9Q1R3S5T7V9W1X',
      'customer',
      'cust_01JZ8K3M5N7P9Q1R3S5T7V9W1X',
      'cust_01JZ8K3M5N7P9Q1R3S5T7V9W1X',
    ],
    ['INV_01jz8k', 'invoice', 'inv_01JZ8K00000000000000000000', 'inv_01JZ8KZZZZZZZZZZZZZZZZZZZZ'],
    ['cn_0', 'credit_note', `cn_${'0'.repeat(26)}`, `cn_0${'Z'.repeat(25)}`],
    ['inv_line_01JZ8K', null],
    ['cust_', null],
    ['cust_01U', null],
    [`cust_${'0'.repeat(27)}`, null],
    ['acme_01', null],
    ['Acme', null],
  ];
  for (const [text, kind, first, last] of ids)
    it(`${text} is ${kind ? `the beginning of an id of a ${kind}` : 'no beginning of an id'}`, () => {
      expect(parseSearchTerm(text).ids).to.deep.equal(kind ? { kind, first, last } : null);
    });
});

describe('hits of a search', () => {
  const hit = (kind: RankedHit['kind'], id: string, rank: RankedHit['rank']): RankedHit => ({ kind, id, rank });
  const order = (hits: RankedHit[], limit = 10) =>
    orderHits(hits, limit)
      .map(({ id }) => id)
      .join(' ');

  it('the best rank first, and one of each kind at a time', () => {
    const hits = [
      hit('plan', 'p1', 1),
      hit('customer', 'c1', 1),
      hit('customer', 'c2', 1),
      hit('plan', 'p2', 2),
      hit('customer', 'c3', 1),
      hit('event', 'e1', 0),
    ];
    expect(order(hits)).to.equal('e1 c1 p1 c2 c3 p2');
    expect(order(hits, 3)).to.equal('e1 c1 p1');
  });

  it('a record once, with its best rank', () => {
    const hits = [hit('customer', 'same', 2), hit('customer', 'same', 0), hit('plan', 'same', 1)];
    expect(orderHits(hits, 10)).to.deep.equal([hit('customer', 'same', 0), hit('plan', 'same', 1)]);
  });
});
