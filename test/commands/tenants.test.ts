/** The command as a person runs it, beside a running service. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { forgetKeys } from '../../api/http/auth.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { runScript, temporaryDirectory } from '../support/service.ts';
import { testStores } from '../support/stores.ts';

describe('npm run tenants', function () {
  this.timeout(60_000);
  let api: TestApi;
  let DATABASE_URL: string;
  before(async () => {
    api = await startTestApi({ now: new Date() });
    const { rows } = await api.services.postgres.raw('select current_database() as name');
    const address = new URL((await testStores()).postgres_url);
    DATABASE_URL = Object.assign(address, { pathname: `/${rows[0].name}` }).href;
  });
  after(() => api.stop());

  const tenants = async (...args: string[]) => {
    const command = runScript('tenants', args, { DATABASE_URL });
    const { code } = await command.ended;
    return { code, said: command.stdout(), faults: command.stderr() };
  };

  it('makes a tenant whose key and password work, suspends it, resumes it, and renews the password', async () => {
    const made = await tenants('--create', 'Second Inc.', '--email', 'eve@example.com');
    expect({ code: made.code, faults: made.faults }).to.deep.equal({ code: 0, faults: '' });
    const [, id] = /^tenant: (tenant_\w+)$/m.exec(made.said)!;
    const [, key] = /^API key for Development: (sk_\w+)$/m.exec(made.said)!;
    const [, password] = /^password: (\S+)$/m.exec(made.said)!;
    const feature = () => api.request('POST', '/features', { key: key!, body: { name: 'Seats', type: 'boolean' } });
    expect((await feature()).status).to.equal(201);

    const suspended = await tenants('--suspend', id!);
    expect(suspended.said).to.equal(`${id} (Second Inc.) is suspended: it reads and does not write\n`);
    forgetKeys(api.services);
    expect((await feature()).status).to.equal(403);
    const read = await api.request('GET', `/tenants/${id}`, { key: key! });
    expect([read.status, read.body.suspended]).to.deep.equal([200, true]);
    expect((await tenants()).said).to.match(new RegExp(`^${id}  Second Inc\\.  \\(suspended\\)$`, 'm'));
    expect((await tenants('--resume', id!)).code).to.equal(0);
    forgetKeys(api.services);
    expect((await api.request('GET', `/tenants/${id}`, { key: key! })).body.suspended).to.equal(false);

    const login = async (given: string) =>
      (await api.request('POST', '/auth/login', { key: null, body: { email: 'eve@example.com', password: given } }))
        .status;
    expect(await login(password!)).to.equal(200);
    const [, renewed] = /^password: (\S+)$/m.exec((await tenants('--new-password', 'EVE@example.com')).said)!;
    expect([await login(password!), await login(renewed!)]).to.deep.equal([403, 200]);
  });

  it('makes no installation where none is', async () => {
    const directory = temporaryDirectory();
    const DATA_DIR = join(directory.path, 'data');
    const command = runScript('tenants', ['--suspend', 'tenant_unknown'], { DATA_DIR });
    expect((await command.ended).code).to.equal(1);
    expect(command.stderr()).to.equal(`tenants: there is no installation in DATA_DIR=${DATA_DIR}\n`);
    expect(existsSync(DATA_DIR)).to.equal(false);
    directory.remove();
  });

  it('says what is wrong in one line', async () => {
    const rows = [
      [['--create', 'Third'], 2, '--create wants --email'],
      [['--suspend', 'a', '--resume', 'b'], 2, 'give one of --suspend and --resume'],
      [['--suspend', 'tenant_unknown'], 1, 'tenant tenant_unknown not found'],
      [['--new-password', 'nobody@example.com'], 1, 'user nobody@example.com not found'],
    ] as const;
    for (const [args, code, line] of rows) {
      const answer = await tenants(...args);
      expect([answer.code, answer.said]).to.deep.equal([code, '']);
      expect(answer.faults)
        .to.match(/^tenants: [^\n]+\n$/)
        .and.contain(line);
    }
  });
});
