/** The console of `npm start`: its page, and the link that signs in the first user and claims the tenant. */
import { join } from 'node:path';
import { expect } from 'chai';
import { type ServiceProcess, startServiceProcess, temporaryDirectory } from '../support/service.ts';
import { until } from '../support/until.ts';

const HEADERS = { 'content-type': 'application/json', 'x-farthing-console': '1', 'sec-fetch-site': 'same-origin' };
const PASSWORD = 'correct horse battery';
type Entered = { user: { email: string | null }; tenant: { id: string } };

describe('the console of npm start', function () {
  this.timeout(180_000);
  const directory = temporaryDirectory();
  const settings = { DATA_DIR: join(directory.path, 'data') };
  let service: ServiceProcess;
  let tenant_id: string;
  after(async () => {
    await service?.stop();
    directory.remove();
  });

  const readLink = () => /^console {4}(\S+\/)#link=([\w-]{43}) {3}\(once, within a day\)$/m.exec(service.stdout());
  const start = async (more = {}) => {
    const { api_key } = service ?? {};
    await service?.stop();
    service = await startServiceProcess({ ...settings, ...more }, api_key === undefined ? {} : { api_key });
  };
  async function enter(body: object) {
    const sent = { method: 'POST', headers: HEADERS, body: JSON.stringify(body) };
    const response = await fetch(`${service.url}/v1/auth/session`, sent);
    const cookie = response.headers.getSetCookie()[0]?.split(';')[0] ?? '';
    return { status: response.status, cookie, body: (await response.json()) as Entered };
  }

  it('is built while the service starts, and then there', async () => {
    await start();
    const [, page] = readLink()!;
    expect(page).to.equal(`${service.url}/`);
    const open = () => fetch(page!, { headers: { accept: 'text/html' } });
    await until('it is built', async () => (await open()).status === 200, 120_000, 500);
    const response = await open();
    const html = await response.text();
    expect(html).to.contain('<div id="root">').and.not.contain('__NONCE__');
    expect(response.headers.get('content-security-policy')).to.contain("script-src 'self';");
    // The session, which is read ahead, is refused to a visitor.
    const files = [...html.matchAll(/(?:src|href)="(\/(?!v1\/)[^"]+)"/g)].map(([, path]) => path!);
    expect(files).to.not.be.empty;
    for (const path of files) expect((await fetch(service.url + path)).status, path).to.equal(200);
    expect(service.stderr()).to.equal('');
  });

  it('is opened by the link, once', async () => {
    const [, , link_token] = readLink()!;
    const { status, body } = await enter({ link_token });
    expect([status, body.user.email]).to.deep.equal([201, null]);
    tenant_id = body.tenant.id;
    expect((await service.request('GET', '/users/me')).body.tenant!.id).to.equal(tenant_id);
    expect((await enter({ link_token })).status).to.equal(403);
  });

  it('has a new link at each start until somebody has claimed the tenant; the one before is dead', async () => {
    const [, , before] = readLink()!;
    await start();
    const [, , older] = readLink()!;
    await start();
    const [, , newer] = readLink()!;
    expect(new Set([before, older, newer]).size).to.equal(3);
    expect((await enter({ link_token: older })).status).to.equal(403);
    const { cookie } = await enter({ link_token: newer });
    const body = JSON.stringify({ name: 'Ada', email: 'ada@example.com', password: PASSWORD });
    const claimed = await fetch(`${service.url}/v1/users/me`, { method: 'PUT', headers: { ...HEADERS, cookie }, body });
    expect(claimed.status).to.equal(200);
    await start();
    expect(service.stdout()).to.match(/^console {4}http:\/\/\S+\/$/m);
    const signedIn = await enter({ email: 'ada@example.com', password: PASSWORD });
    expect([signedIn.status, signedIn.body.tenant.id]).to.deep.equal([201, tenant_id]);
  });

  it('has no link in the output where the key is configured, nor where the console is off', async () => {
    const dir = join(directory.path, 'other');
    const configured = await startServiceProcess({ DATA_DIR: dir, BOOTSTRAP_API_KEY: 'sk_test_console' });
    expect(configured.stdout())
      .to.match(/^console {4}http:\/\/\S+\/$/m)
      .and.not.contain('#link');
    await configured.stop();
    const off = await startServiceProcess({ DATA_DIR: dir, CONSOLE: 'off' }, { api_key: 'sk_test_console' });
    expect(off.stdout()).to.not.match(/^console/m);
    expect((await fetch(off.url, { headers: { accept: 'text/html' }, redirect: 'manual' })).status).to.equal(302);
    await off.stop();
  });
});
