import { expect } from 'chai';
import { deriveEntityName } from '../../../../core/platform/audit/entity-name.ts';

describe('the name of a changed record', () => {
  const cases: [object | null, object | null, string | null][] = [
    [null, { name: 'Pro', lookup_key: 'pro' }, 'Pro'],
    [{ name: 'Old' }, { name: 'New' }, 'New'],
    [{ name: 'Gone' }, null, 'Gone'],
    [null, { invoice_number: 'INV-1', idempotency_key: 'x' }, 'INV-1'],
    [null, { name: '', external_id: 'acme' }, 'acme'],
    [null, { key: 'invoice_config', value: {} }, 'invoice_config'],
    [null, { name: 7, amount: '5' }, null],
    [null, null, null],
  ];
  for (const [before, after, name] of cases)
    it(`${JSON.stringify(before)} → ${JSON.stringify(after)}: ${name}`, () => {
      const states = { before, after } as Parameters<typeof deriveEntityName>[0];
      expect(deriveEntityName(states)).to.equal(name);
    });
});
