/**
 * Who calls: the header `x-api-key` decides tenant, environment, principal and roles. The environment of the key wins; a
 * key without one takes it from X-Environment-ID, which must belong to the tenant
 * (docs/rules/records.md, "Tenant and environment").
 */
import type { Request } from 'express';
import { LRUCache } from 'lru-cache';
import type { Permission } from '../../core/access/role.ts';
import { FarthingError } from '../../core/error.ts';
import { instantOf } from '../../core/time/instant.ts';
import { hashApiKey } from '../../storage/api-key.ts';
import { environmentBelongs, findKeyHolder, type KeyHolder, touchKey } from '../../storage/models/secret.ts';
import type { Database } from '../../storage/stores.ts';
import type { Services } from '../services.ts';
import { asFarthingError, unauthenticated } from './errors.ts';
import { checkAccess } from './permissions.ts';
import { RateLimits } from './rate-limit.ts';

export type Caller = KeyHolder & { readonly environment_id: string };

/** A revoked key stops working in this process at once, in the others when this has passed. */
const FRESH_MS = 5_000;
/** While Postgres is away nobody can be looked up: whoever was known so lately goes on sending events. */
const KNOWN_MS = 60_000;
const TRIED_EVERY_MS = 1_000;
const TOUCHED_EVERY_MS = 60_000;

/** Who it is, when that was looked up, and when it was tried last. */
type Kept = { readonly holder: KeyHolder; readonly seen_ms: number; readonly tried_ms: number };

const holders = new WeakMap<Database, LRUCache<string, Kept>>();
/**
 * Hashes that were no key a moment ago: who tries one again and again does not ask Postgres each time. Keys are random, so nobody
 * has tried one before it was made, but the one that is configured: another process may take it as late as this.
 */
const wrong = new WeakMap<Database, LRUCache<string, true>>();
const limits = new WeakMap<Database, RateLimits>();

/** Of this process. */
export function rateLimitsOf({ postgres, config }: Services): RateLimits {
  return made(limits, postgres, () => new RateLimits(config));
}

export async function authenticate(
  request: Request,
  access: Permission,
  services: Services,
  now: Date,
): Promise<Caller> {
  const holder = await holderOf(request, services, now);
  if (holder.expires_at !== null && instantOf(holder.expires_at) <= now.getTime())
    throw unauthenticated('the API key has expired');
  checkAccess(access, holder);
  return { ...holder, environment_id: await environmentOf(request, holder, access, services.postgres) };
}

/** After a key, a user or a tenant has changed. */
export function forgetKeys(services: Services): void {
  holders.get(services.postgres)?.clear();
  wrong.get(services.postgres)?.clear();
}

async function holderOf(request: Request, services: Services, now: Date): Promise<KeyHolder> {
  const key = request.get('x-api-key')?.trim();
  if (!key) throw unauthenticated(withoutKey(request));
  const hash = hashApiKey(key);
  const kept = cacheOf(services.postgres);
  const known = kept.get(hash);
  const now_ms = now.getTime();
  // While somebody tries, the others go on: a Postgres that hangs would hold up every one of them.
  if (known && (now_ms - known.seen_ms < FRESH_MS || now_ms - known.tried_ms < TRIED_EVERY_MS)) return known.holder;
  if (known) kept.set(hash, { ...known, tried_ms: now_ms }, { noUpdateTTL: true });
  else await rateLimitsOf(services).refuseGuessing(request);
  try {
    const holder = await lookUp(services.postgres, hash, now);
    kept.set(hash, { holder, seen_ms: now_ms, tried_ms: now_ms });
    return holder;
  } catch (error) {
    const { code, http_status_code } = asFarthingError(error);
    if (known && code === 'service_unavailable') return known.holder;
    kept.delete(hash);
    if (http_status_code === 401) await rateLimitsOf(services).countWrongKey(request);
    throw error;
  }
}

async function lookUp(database: Database, hash: string, now: Date): Promise<KeyHolder> {
  const refused = made(wrong, database, () => new LRUCache({ max: 10_000, ttl: FRESH_MS }));
  const holder = refused.has(hash) ? undefined : await findKeyHolder(database, hash);
  if (!holder) {
    refused.set(hash, true, { noUpdateTTL: true });
    throw unauthenticated('the API key is not valid');
  }
  if (holder.last_used_at === null || now.getTime() - instantOf(holder.last_used_at) > TOUCHED_EVERY_MS)
    await touchKey(database, holder.secret_id, now);
  return holder;
}

function withoutKey(request: Request): string {
  return request.get('authorization')
    ? 'bearer tokens are not accepted here: send an API key in the header x-api-key'
    : 'the header x-api-key is missing';
}

function cacheOf(database: Database): LRUCache<string, Kept> {
  return made(holders, database, () => new LRUCache({ max: 10_000, ttl: KNOWN_MS }));
}

function made<Kind extends object>(of: WeakMap<Database, Kind>, database: Database, make: () => Kind): Kind {
  const known = of.get(database) ?? make();
  of.set(database, known);
  return known;
}

/** Empty only where none is needed: users, environments and tenants lie above the environments. */
async function environmentOf(
  request: Request,
  holder: KeyHolder,
  access: Permission,
  database: Database,
): Promise<string> {
  if (holder.environment_id !== null) return holder.environment_id;
  const asked = request.get('x-environment-id')?.trim();
  if (!asked) {
    if (/^(tenant|user|self|environment):/.test(access)) return '';
    throw new FarthingError('permission_denied', 'no environment: send the header X-Environment-ID');
  }
  if (!(await environmentBelongs(database, holder.tenant_id, asked)))
    throw new FarthingError('permission_denied', 'this environment does not belong to the tenant');
  return asked;
}
