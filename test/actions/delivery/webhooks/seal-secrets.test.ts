/** docs/decisions/0022-tenant-isolation.md: a backup of Postgres contains no usable secrets of webhooks. */
import { createCipheriv, createHash, randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { changeEndpoint, rotateSecret } from '../../../../actions/delivery/webhooks/change-endpoint.ts';
import { sealSecrets } from '../../../../actions/delivery/webhooks/seal-secrets.ts';
import { sealSecretsJob } from '../../../../scheduler/jobs/seal-secrets.ts';
import { createSealer } from '../../../../storage/foundation/secrets/sealing.ts';
import { startTestApi, type TestApi } from '../../../support/api.ts';

/** Encrypts in the form of earlier versions, which names neither the key nor the record. */
function sealedBefore(secret: string, key: string): string {
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', createHash('sha256').update(key).digest(), nonce);
  const bytes = Buffer.concat([nonce, cipher.update(secret), cipher.final(), cipher.getAuthTag()]);
  return `sealed:${bytes.toString('base64')}`;
}

const OLD = 'the key of these tests before this one and long enough';
const NEW = 'the key of these tests from now on and long enough too';

describe('secrets of webhooks', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi({ now: '2026-03-15T12:00:00Z', config: { SECRETS_KEYS: OLD } });
  });
  after(() => api.stop());

  const make = async () => {
    const body = { url: 'https://example.com/hook', event_names: [] };
    const { status, text, body: made } = await api.request('POST', '/webhooks/endpoints', { body });
    expect(status, text).to.equal(201);
    return { id: made.endpoint.id as string, secret: made.secret as string };
  };
  const owner = (id: string) => ({ ...api.scope, id });
  const kept = (id: string) =>
    api.services.postgres('webhook_endpoints').where({ id }).first('secret', 'previous_secret');

  it('are sealed in Postgres, each otherwise, and opened by the key alone', async () => {
    const { id, secret } = await make();
    expect(secret).to.match(/^whsec_/);
    const row = await kept(id);
    expect(row.secret)
      .to.match(/^sealed:2:[0-9a-f]{8}:/)
      .and.not.contain(secret.slice(6, 20));
    expect(createSealer([OLD]).open(row.secret, owner(id))).to.equal(secret);
    expect(createSealer([OLD]).seal(secret, owner(id))).to.not.equal(row.secret);
    expect(() => createSealer([NEW]).open(row.secret, owner(id))).to.throw(/SECRETS_KEYS/);
    expect(() => createSealer([]).open(row.secret, owner(id))).to.throw(/SECRETS_KEYS/);
    const damaged = `${row.secret.slice(0, -6)}AAAA==`;
    expect(() => createSealer([OLD]).open(damaged, owner(id))).to.throw(/SECRETS_KEYS/);
  });

  it('stay sealed when another takes their place', async () => {
    const { id, secret } = await make();
    const path = `/webhooks/endpoints/${id}/secret/rotate` as const;
    const rotated = await api.request('POST', path, { body: { overlap_hours: 24 } });
    const row = await kept(id);
    const { open } = createSealer([OLD]);
    expect([open(row.secret, owner(id)), open(row.previous_secret, owner(id))]).to.deep.equal([
      rotated.body.secret,
      secret,
    ]);
    expect(row.previous_secret).to.match(/^sealed:/);
  });

  it('that were kept as they are, or with another key, are sealed by the scheduler; then the old key is not needed', async () => {
    const { id, secret } = await make();
    await api.services.postgres('webhook_endpoints').where({ id }).update({ secret });
    const both = createSealer([NEW, OLD]);
    const run = () => sealSecretsJob(api.services, { sealing: both, every_seconds: 3600 }).run(new Date());
    expect((await run()).done).to.deep.equal({ sealed: 3 });
    expect((await run()).done).to.deep.equal({ sealed: 0 });
    expect(createSealer([NEW]).open((await kept(id)).secret, owner(id))).to.equal(secret);
    expect(await sealSecrets(api.services, createSealer([]))).to.equal(0);
  });

  it('of another record, environment or tenant do not open', async () => {
    const { id } = await make();
    const { secret } = await kept(id);
    const { tenant_id, environment_id } = api.scope;
    for (const other of [
      { tenant_id, environment_id, id: 'whep_other' },
      { tenant_id, environment_id: 'env_other', id },
      { tenant_id: 'tenant_other', environment_id, id },
    ])
      expect(() => createSealer([OLD]).open(secret, other), JSON.stringify(other)).to.throw(
        /belongs to another record/,
      );
  });

  it('in the form of earlier versions open, and the scheduler seals them in the newest form', async () => {
    const { id, secret } = await make();
    await api.services
      .postgres('webhook_endpoints')
      .where({ id })
      .update({ secret: sealedBefore(secret, OLD) });
    const sealing = createSealer([NEW, OLD]);
    expect(sealing.open((await kept(id)).secret, owner(id))).to.equal(secret);
    await sealSecrets(api.services, sealing);
    const { secret: resealed } = await kept(id);
    expect(resealed).to.match(/^sealed:2:/);
    expect(sealing.open(resealed, owner(id))).to.equal(secret);
  });

  it('are kept as they are where there is no key', async () => {
    const { id } = await make();
    const author = { user_id: 'user', now: new Date() };
    const asked = { id, overlap_hours: 0, author, sealing: createSealer([]) };
    const { secret } = await rotateSecret(api.services, api.scope, asked);
    expect((await kept(id)).secret).to.equal(secret);
    await changeEndpoint(api.services, api.scope, { id, changes: { description: 'changed' }, author });
    expect((await kept(id)).secret).to.equal(secret);
  });
});
