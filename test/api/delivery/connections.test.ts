/**
 * docs/integrations/README.md, "Connections". In an environment with a test clock no provider is called, so these tests need none;
 * test/actions/delivery/connections has those that call one.
 */
import { expect } from 'chai';
import { createSealer } from '../../../storage/foundation/secrets/sealing.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';

const KEY = 'a key of the settings that has 32 characters';
const CANARY = 'sk_test_canary_that_nobody_may_see';
const stripe = { secret_key: CANARY, webhook_secret: 'whsec_canary_that_nobody_may_see' };

describe('connections to accounts over HTTP', () => {
  let api: TestApi;
  before(async () => {
    api = await startTestApi({ now: '2026-03-15T12:00:00Z', config: { SECRETS_KEYS: KEY, EXPORT_DIRECTORY: '/tmp' } });
    await api.request('POST', '/test-clocks', { body: { frozen_time: '2026-03-15T12:00:00Z' } });
  });
  after(() => api.stop());

  const create = (fields: object = {}, key?: string) =>
    api.request('POST', '/connections', {
      body: { name: 'Stripe', provider_type: 'stripe', encrypted_secret_data: { stripe }, ...fields },
      ...(key ? { key } : {}),
    });
  const refusal = async (answer: ReturnType<typeof create>) => {
    const { status, body } = await answer;
    return [status, body.code, body.details?.field];
  };
  const read = (id: string) => api.services.postgres('connections').where({ id }).first();

  it('400: credentials that are absent or wrong are named by their path', async () => {
    const cases: [object, string][] = [
      [{ provider_type: 'tabs' }, 'provider_type'],
      [{ encrypted_secret_data: null }, 'encrypted_secret_data.stripe'],
      [{ encrypted_secret_data: { stripe: {} } }, 'encrypted_secret_data.stripe.secret_key'],
      [
        { encrypted_secret_data: { stripe: { ...stripe, secret_kye: 'x' } } },
        'encrypted_secret_data.stripe.secret_kye',
      ],
      [{ encrypted_secret_data: { stripe: { secret_key: 'a word' } } }, 'encrypted_secret_data.stripe.secret_key'],
      [
        { encrypted_secret_data: { stripe, s3: { aws_access_key_id: 'a', aws_secret_access_key: 'b' } } },
        'encrypted_secret_data.s3',
      ],
      [{ provider_type: 'directory' }, 'encrypted_secret_data.stripe'],
      [{ sync_config: { plan: { inbound: true, outbound: false } } }, 'sync_config.plan.inbound'],
      [{ sync_config: { s3: {} } }, 'sync_config.s3'],
      [{ sync_config: { aws_marketplace: { region: 'eu-west-1' } } }, 'sync_config.aws_marketplace'],
      [{ sync_config: { invoice_sync_settings: {} } }, 'sync_config.invoice_sync_settings'],
      [
        { encrypted_secret_data: { stripe, settings: { invoice_sync_enable: true } } },
        'encrypted_secret_data.settings',
      ],
      [{ encrypted_secret_data: { stripe, generic: { data: {} } } }, 'encrypted_secret_data.generic'],
    ];
    for (const [fields, field] of cases)
      expect(await refusal(create(fields)), JSON.stringify(fields)).to.deep.equal([400, 'validation_error', field]);
    const { body } = await create({ provider_type: 'tabs' });
    expect(body.details!.allowed).to.include.members(['s3', 'directory', 'stripe']);
  });

  it('400: live credentials outside production', async () => {
    const live = { secret_key: 'sk_live_canary_that_nobody_may_see' };
    const answer = await create({ encrypted_secret_data: { stripe: live } });
    expect([answer.status, answer.body.code]).to.deep.equal([400, 'invalid_operation']);
    expect(answer.text)
      .to.match(/environment of type production/)
      .and.not.include('canary');
  });

  it('201, then 409: one for each provider, sealed for its own record; after it is archived, another', async () => {
    const { status, body, text } = await create();
    expect(status, text).to.equal(201);
    expect(body).to.include({ connection_state: 'active', attention_reason: null, provider_account_id: null });
    const row = await read(body.id);
    expect(row.secret).to.match(/^sealed:2:/);
    expect(JSON.parse(createSealer([KEY]).open(row.secret, row))).to.deep.equal({ stripe });
    expect(() => createSealer([KEY]).open(row.secret, { ...row, tenant_id: 'tenant_other' })).to.throw();
    const again = await create({ name: 'Another' });
    expect([again.status, again.body.code]).to.deep.equal([409, 'already_exists']);
    const both = await Promise.all([archive(body.id), archive(body.id)]);
    expect(both.map((answer) => answer.status).sort()).to.deep.equal([204, 404]);
    expect((await read(body.id)).secret).to.equal('');
    const made = await Promise.all([create(), create()]);
    expect(made.map((answer) => answer.status).sort()).to.deep.equal([201, 409]);
    await archive(made.find((answer) => answer.status === 201)!.body.id);
  });
  const archive = (id: string) => api.request('DELETE', `/connections/${id}` as const);

  it('a directory has no credentials, and the credentials of S3 stay as they were', async () => {
    const s3 = { aws_access_key_id: 'AKIA', aws_secret_access_key: 'the secret of this key', aws_session_token: null };
    const body = { name: 'Store', provider_type: 's3', encrypted_secret_data: { s3 } };
    const store = await create(body);
    expect((await create(body)).status, 'there may be several').to.equal(201);
    const row = await read(store.body.id);
    expect(JSON.parse(createSealer([KEY]).open(row.secret, row))).to.deep.equal({ s3 });
    expect((await create({ provider_type: 'directory', encrypted_secret_data: null })).status).to.equal(201);
    const tested = await api.request('POST', `/connections/${store.body.id}/test`);
    expect([tested.status, tested.body.code]).to.deep.equal([400, 'invalid_operation']);
  });

  it('400: an environment with a test clock never calls', async () => {
    const { body } = await create();
    const { status, text, body: refused } = await api.request('POST', `/connections/${body.id}/test`);
    expect([status, refused.code]).to.deep.equal([400, 'invalid_operation']);
    expect(text).to.match(/test clock never calls/);
    const { key } = await api.otherTenant();
    expect((await api.request('POST', `/connections/${body.id}/test`, { key })).status).to.equal(404);
    await archive(body.id);
  });

  it('new credentials replace the earlier ones; the exchanged records are changed alone', async () => {
    const { body } = await create();
    const path = `/connections/${body.id}` as const;
    const sync_config = { invoice: { inbound: false, outbound: true } };
    const changed = await api.request('PUT', path, { body: { sync_config } });
    expect(changed.body.sync_config).to.deep.include(sync_config);
    const before = await read(body.id);
    await api.request('PUT', path, { body: { encrypted_secret_data: { stripe: { secret_key: 'rk_test_another' } } } });
    const after = await read(body.id);
    expect(after.secret).to.not.equal(before.secret);
    expect(JSON.parse(createSealer([KEY]).open(after.secret, after)).stripe.secret_key).to.equal('rk_test_another');
    expect(after.sync_config).to.deep.include(sync_config);
    await archive(body.id);
  });

  it('credentials are in no answer, log line or audit entry, whatever is wrong with the request', async () => {
    const { body } = await create();
    const path = `/connections/${body.id}` as const;
    const answers = [
      await create(),
      await create({ name: '' }),
      await create({ name: 'x', metadata: CANARY.length }),
      await api.request('GET', path),
      await api.request('GET', '/connections?limit=1000'),
      await api.request('POST', '/connections/search', { body: {} }),
      await api.request('PUT', path, { body: { encrypted_secret_data: { stripe } } }),
      await api.request('PUT', path, { body: { encrypted_secret_data: { stripe: { ...stripe, account_id: 7 } } } }),
      await api.request('POST', `${path}/test`),
      await api.request('GET', '/integrations/config'),
      await api.request('GET', '/secrets/integrations/by-provider/stripe'),
      await api.request('GET', `/audit-logs?entity_id=${body.id}`),
      await archive(body.id),
    ];
    for (const { text } of answers) expect(text ?? '').to.not.include('canary');
    expect(api.logged()).to.not.include('canary');
    const { rows } = await api.services.postgres.raw(
      "select before::text || after::text as entry from audit_entries where entity_type = 'connection'",
    );
    expect(rows).to.not.have.length(0);
    expect(JSON.stringify(rows)).to.not.include('canary');
  });
});

describe('connections to accounts without a key to seal them', () => {
  it('are refused when they are made', async () => {
    const api = await startTestApi();
    try {
      const body = { name: 'Stripe', provider_type: 'stripe', encrypted_secret_data: { stripe } };
      const answer = await api.request('POST', '/connections', { body });
      expect([answer.status, answer.body.code]).to.deep.equal([400, 'invalid_operation']);
      expect(answer.text)
        .to.match(/SECRETS_KEYS/)
        .and.not.include('canary');
    } finally {
      await api.stop();
    }
  });
});
