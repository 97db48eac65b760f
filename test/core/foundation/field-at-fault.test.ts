// docs/rules/errors.md, "The error record".
import { expect } from 'chai';
import { alreadyExists, invalid, notFound } from '../../../core/foundation/error.ts';
import { withField } from '../../../core/foundation/field-at-fault.ts';

describe('the field at fault', () => {
  const CASES: [what: string, error: ReturnType<typeof notFound>, request: unknown, field: unknown][] = [
    ['an id that a key holds', notFound('plan', 'p1'), { name: 'p1x', plan_id: 'p1' }, 'plan_id'],
    ['the outer one first', notFound('price', 'p'), { inner: { price_id: 'p' }, price_id: 'p' }, 'price_id'],
    ['one of a list', notFound('price', 'p2'), { items: [{ id: 'p1' }, { id: 'p2' }] }, 'items[1].id'],
    ['an id of the path', notFound('plan', 'p1'), { name: 'x' }, undefined],
    ['no request', notFound('plan', 'p1'), undefined, undefined],
    ['a request that is the id', notFound('plan', 'p1'), 'p1', undefined],
    [
      'what is there already',
      alreadyExists('a customer with external_id x exists already'),
      { external_id: 'x' },
      'external_id',
    ],
    ['part of a word', alreadyExists('this external_id exists'), { external: 'x' }, undefined],
    ['what names its field', invalid('name', 'is wrong'), { name: '' }, 'name'],
  ];
  for (const [what, error, request, field] of CASES)
    it(what, () => {
      const told = withField(error, request);
      expect([told.code, told.message, told.details?.field]).to.deep.equal([error.code, error.message, field]);
    });

  it('is looked for among so many values alone', () => {
    const many = Array.from({ length: 20_000 }, () => ({ inner: ['x'] }));
    expect(withField(notFound('plan', 'x'), many).details?.field).to.equal(undefined);
  });
});
