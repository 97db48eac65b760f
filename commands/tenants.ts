/**
 * `npm run tenants [-- --create NAME --email EMAIL | --suspend ID | --resume ID | --new-password EMAIL]`
 *
 * Lists the tenants, or creates or changes one; also next to a running service (docs/operations.md, "Tenants").
 */
import { z } from 'zod';
import { openTenant, renewPassword, suspendTenant } from '../actions/operations/access/operate-tenants.ts';
import { readConfig } from '../config.ts';
import { exitWithUsage, parseArguments } from '../process/command-line.ts';
import { explain } from '../process/explain.ts';
import { migratePostgres } from '../sql/migrate.ts';
import type { Database } from '../storage/foundation/stores.ts';
import { listTenants } from '../storage/models/foundation/tenant.ts';
import { connectPostgres } from '../storage/postgres/pool/postgres.ts';
import { reachPostgres } from './reach-postgres.ts';

const text = { type: 'string' } as const;
const VERBS = ['create', 'suspend', 'resume', 'new-password'] as const;

type TenantCommand = { readonly verb: (typeof VERBS)[number] | 'list'; readonly what: string; readonly email: string };

async function main(): Promise<void> {
  const command = parseCommand();
  const { postgres_url, stop } = await reachPostgres(readConfig(), { beside: true });
  const postgres = connectPostgres(postgres_url);
  try {
    await migratePostgres(postgres);
    for (const line of await runCommand(postgres, command)) process.stdout.write(`${line}\n`);
  } finally {
    await postgres.destroy();
    await stop();
  }
}

function parseCommand(): TenantCommand {
  const { email = '', ...given } = parseArguments('tenants', {
    create: text,
    suspend: text,
    resume: text,
    'new-password': text,
    email: text,
  });
  const verbs = VERBS.filter((verb) => given[verb] !== undefined);
  const [verb = 'list'] = verbs;
  if (verbs.length > 1) exitWithUsage('tenants', `give one of ${verbs.map((each) => `--${each}`).join(' and ')}`);
  if (verb === 'create' && !z.email().safeParse(email).success)
    exitWithUsage('tenants', '--create wants --email, that of the first user');
  if (verb !== 'create' && email) exitWithUsage('tenants', '--email goes together with --create');
  const what = verb === 'list' ? '' : given[verb]!.trim();
  if (verb !== 'list' && what === '') exitWithUsage('tenants', `--${verb} wants a value`);
  return { verb, what, email };
}

async function runCommand(postgres: Database, { verb, what, email }: TenantCommand): Promise<string[]> {
  const now = new Date();
  switch (verb) {
    case 'create':
      return formatTenant(await openTenant({ postgres }, { name: what, email, now }));
    case 'suspend':
    case 'resume': {
      const tenant = await suspendTenant({ postgres }, { id: what, suspended: verb === 'suspend', now });
      return [
        `${tenant.id} (${tenant.name}) ${verb === 'suspend' ? 'is suspended: it reads and does not write' : 'reads and writes'}`,
      ];
    }
    case 'new-password':
      return [`password: ${await renewPassword({ postgres }, { email: what, now })}`];
    default:
      return (await listTenants(postgres)).map(
        ({ id, name, suspended }) => `${id}  ${name}${suspended ? '  (suspended)' : ''}`,
      );
  }
}

function formatTenant({
  tenant_id,
  environments,
  password,
  api_key,
}: Awaited<ReturnType<typeof openTenant>>): string[] {
  return [
    `tenant: ${tenant_id}`,
    ...environments.map(({ id, name }) => `environment: ${id}  ${name}`),
    `password: ${password}`,
    `API key for ${environments[0]!.name}: ${api_key}`,
  ];
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`tenants: ${explain(error)}\n`);
    process.exit(1);
  },
);
