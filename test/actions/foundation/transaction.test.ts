/** Two that hold the same rows in another order are both done, one behind the other. */
import { expect } from 'chai';
import { runBillingTransaction } from '../../../actions/foundation/transaction.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';

describe('a billing transaction', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi({ now: '2026-03-15T12:00:00Z' });
  });
  after(() => api.stop());

  it('that is undone because another waits for it begins anew, and is done behind that', async () => {
    const ids: string[] = [];
    for (const external_id of ['one', 'two'])
      ids.push((await api.request('POST', '/customers', { body: { external_id } })).body.id);
    let waiting = 0;
    let go = () => {};
    const both = new Promise<void>((resolve) => (go = resolve));
    let tries = 0;
    const rename = (first: string, second: string, name: string) =>
      runBillingTransaction(api.services, async (transaction) => {
        tries += 1;
        const hold = (id: string) =>
          transaction('customers')
            .where({ ...api.scope, id })
            .update({ name });
        await hold(first);
        if (++waiting === 2) go();
        await both;
        await hold(second);
        return name;
      });
    const [one, two] = ids as [string, string];
    expect(await Promise.all([rename(one, two, 'a'), rename(two, one, 'b')])).to.deep.equal(['a', 'b']);
    // Where each finds at one moment that it waits for the other, both are undone, and may meet again.
    expect(tries).to.be.at.least(3);
    const names = await api.services.postgres('customers').where(api.scope).whereIn('id', ids).pluck('name');
    expect(new Set(names).size).to.equal(1);
  });

  it('is not begun inside of another, whose place it would wait for', async () => {
    const inner = () => runBillingTransaction(api.services, async () => 'in');
    const nested = runBillingTransaction(api.services, inner);
    expect(await nested.catch((error: Error) => error.message)).to.match(/begun inside of another/);
    expect(await Promise.all([inner(), inner()])).to.deep.equal(['in', 'in']);
  });

  it('that fails otherwise is not tried again', async () => {
    let tries = 0;
    const failing = runBillingTransaction(api.services, async () => {
      tries += 1;
      throw new Error('no');
    });
    expect(await failing.catch((error: Error) => error.message)).to.equal('no');
    expect(tries).to.equal(1);
  });
});
