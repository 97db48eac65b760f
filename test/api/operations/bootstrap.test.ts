import { expect } from 'chai';
import { hashApiKey } from '../../../storage/foundation/secrets/api-key.ts';
import { bootstrap } from '../../../storage/models/operations/bootstrap.ts';
import { type FreshDatabase, freshDatabase } from '../../support/stores.ts';

describe('the first start', () => {
  let database: FreshDatabase;
  const now = new Date('2026-03-15T12:00:00Z');
  const count = async (table: string) => Number((await database.postgres(table).count())[0]!.count);

  beforeEach(async () => {
    database = await freshDatabase();
  });
  afterEach(() => database.close());

  it('makes a tenant, a development environment, a super_admin and a random key', async () => {
    const first = await bootstrap(database.postgres, { now });
    expect(first.api_key).to.match(/^sk_[0-9A-HJKMNP-TV-Z]{26}$/);
    expect(first.environment).to.deep.include({ tenant_id: first.tenant.id, type: 'development' });
    expect(first.user.roles).to.deep.equal(['super_admin']);
    const [secret] = await database.postgres('secrets');
    expect(secret.key_hash).to.equal(hashApiKey(first.api_key!));
    expect(secret.display_id).to.equal(`${first.api_key!.slice(0, 5)}***${first.api_key!.slice(-2)}`);
  });

  it('is done once by however many processes start at once', async () => {
    const all = await Promise.all(Array.from({ length: 8 }, () => bootstrap(database.postgres, { now })));
    expect(new Set(all.map((one) => one.tenant.id)).size).to.equal(1);
    expect(all.filter((one) => one.api_key !== null)).to.have.length(1);
    for (const table of ['tenants', 'environments', 'users', 'secrets']) expect(await count(table)).to.equal(1);
  });

  it('takes the key that is given, and later another one beside it', async () => {
    const first = await bootstrap(database.postgres, { now, api_key: 'sk_given_at_first' });
    expect(first.api_key).to.equal('sk_given_at_first');
    await bootstrap(database.postgres, { now, api_key: 'sk_given_at_first' });
    const later = await bootstrap(database.postgres, { now, api_key: 'sk_given_later_on' });
    expect(later.tenant.id).to.equal(first.tenant.id);
    const rows = await database.postgres('secrets').orderBy('created_at');
    expect(rows.map((row) => row.key_hash)).to.have.members(['sk_given_at_first', 'sk_given_later_on'].map(hashApiKey));
    for (const row of rows) expect(row.user_id).to.equal(first.user.id);
  });

  it('does not bring a revoked key back', async () => {
    await bootstrap(database.postgres, { now, api_key: 'sk_given_at_first' });
    await database.postgres('secrets').update({ status: 'deleted' });
    await bootstrap(database.postgres, { now, api_key: 'sk_given_at_first' });
    expect(await database.postgres('secrets').select('status')).to.deep.equal([{ status: 'deleted' }]);
  });
});
