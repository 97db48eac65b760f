/** Record ids in rows, on which cached answers and drafts depend. */
import { expect } from 'chai';
import { isCorrectionsId, isRecordId, listRecordIds } from '../../../storage/cache/record-ids.ts';

const ULID = '01JZ8K3M5N7P9Q1R3S5T7V9W1X';

const CASES: readonly (readonly [column: string, value: string, isRecord: boolean])[] = [
  ['id', `subs_${ULID}`, true],
  ['subscription_id', `subs_${ULID}`, true],
  ['coupon_id', `coupon_${ULID}`, true],
  ['entity_id', `feat_${ULID}`, true],
  ['id', `env_${ULID}`, true],
  ['id', `env_${ULID}/corrections`, false],
  ['id', `subs_${ULID}/corrections`, false],
  // Invoices and lines change with the subscription that they name.
  ['id', `inv_${ULID}`, false],
  ['name', `subs_${ULID}`, false],
  ['tenant_id', `env_${ULID}`, false],
  ['external_customer_id', `cust_${ULID}`, false],
  ['lookup_key', `price_${ULID}`, false],
  ['id', `subs_${ULID.toLowerCase()}`, false],
];

describe('record ids', () => {
  for (const [column, value, isRecord] of CASES)
    it(`${isRecord ? 'are' : 'are not'} ${value} in the column ${column}`, () => {
      expect(isRecordId(column, value)).to.equal(isRecord);
    });

  it('of corrections are told apart, one for each environment', () => {
    const texts = [`env_${ULID}/corrections`, `env_${ULID}`, `subs_${ULID}/corrections`];
    expect(texts.map((text) => isCorrectionsId('id', text))).to.deep.equal([true, false, false]);
  });

  it('are found in the key of an answer', () => {
    expect(listRecordIds(`balance of cust_${ULID} in env_${ULID}`)).to.deep.equal([`cust_${ULID}`, `env_${ULID}`]);
    expect(listRecordIds('revenue of all')).to.deep.equal([]);
  });
});
