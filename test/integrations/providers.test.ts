/** `integrations/` is the only folder that names a provider, and index.ts the only file that imports one. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { providerType } from '../../api/delivery/connections/schema.ts';
import { PAYMENT_GATEWAYS } from '../../core/payments/record.ts';
import { listCapable } from '../../integrations/find-capability.ts';
import { PROVIDERS } from '../../integrations/index.ts';
import type { Exchange } from '../../integrations/provider.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const FOLDERS = ['core', 'actions', 'api', 'storage', 'pipeline', 'scheduler', 'process', 'commands'];

/** Files outside `integrations/` that may name a provider, with the reason. */
const NAMING: Readonly<Record<string, string>> = {
  'api/payments/notices.ts': 'a path and an operation of the API',
  'api/payments/checkout-routes.ts': 'examples of requests',
  'api/payments/schema.ts': 'examples of requests',
  'api/delivery/connections/schema.ts': 'examples of requests',
  'api/delivery/integrations/schema.ts': 'examples of requests',
  'api/operations/secrets/schema.ts': 'examples of requests',
  'core/payments/record.ts': 'values of the API, also of providers to come',
  'core/platform/connection/record.ts': 'values of the API, also of providers to come',
};

const sources = (folder: string) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => ({ file: `${folder}/${name}`, text: readFileSync(join(ROOT, folder, name), 'utf8') }));

describe('providers', () => {
  const folders = readdirSync(join(ROOT, 'integrations')).filter((name) => Object.hasOwn(PROVIDERS, name));

  it('have a folder each', () => {
    expect(folders).to.have.members(Object.keys(PROVIDERS));
  });

  it('collect payments if the API has them as gateways, and only then', () => {
    const collects = ([, { exchanges }]: [string, { exchanges: readonly Exchange[] }]) =>
      exchanges.includes('payment_link') || exchanges.includes('saved_card');
    const accounts = Object.entries(listCapable('account')).filter(collects);
    const gateways = [...Object.keys(listCapable('payments')), ...accounts.map(([name]) => name)];
    expect([...PAYMENT_GATEWAYS]).to.have.members(gateways);
  });

  it('are named by their folder and index.ts alone', () => {
    // These two names are also ordinary words.
    const names = Object.keys(PROVIDERS).filter((name) => name !== 'http' && name !== 'directory');
    const named = new RegExp(`['"](?:${names.join('|')})['"]`);
    const found = FOLDERS.flatMap(sources).filter(({ text }) => named.test(text));
    expect(found.map(({ file }) => file).sort(), 'ask for a capability: integrations/find-capability.ts').to.deep.equal(
      Object.keys(NAMING).sort(),
    );
  });

  it('are imported by index.ts alone', () => {
    const within = sources('integrations').filter(({ file }) => file.split('/').length === 2);
    const names = folders.join('|');
    const importers = [
      ...FOLDERS.flatMap(sources).filter(({ text }) => new RegExp(`\\.\\./integrations/(?:${names})/`).test(text)),
      ...within.filter(({ text }) => new RegExp(`'\\./(?:${names})/`).test(text)),
    ];
    expect(importers.map(({ file }) => file)).to.deep.equal(['integrations/index.ts']);
  });

  it('with credentials are values of provider_type in the API', () => {
    const names = ['account', 'export_destination'].flatMap((one) => Object.keys(listCapable(one as 'account')));
    for (const name of names) expect(providerType.parse(name.toUpperCase())).to.equal(name);
  });

  it('are found by capability', () => {
    expect(Object.keys(listCapable('payments'))).to.deep.equal(['sandbox']);
    expect(Object.keys(listCapable('export_destination'))).to.deep.equal(['s3', 'directory']);
    expect(Object.keys(listCapable('webhook_delivery'))).to.deep.equal(['svix', 'http']);
    expect(Object.keys(listCapable('mail'))).to.deep.equal(['smtp']);
    expect(Object.keys(listCapable('account'))).to.include.members(['stripe', 'razorpay', 'quickbooks']);
  });
});
