/**
 * Authenticates a request. The header `x-api-key`, a bearer token or key, or the cookie of a browser session determines tenant, principal and
 * roles. A key determines the environment, and a header that names another one is refused. A token's environment is its claim, else the
 * header X-Environment-ID, which must belong to the tenant (docs/rules/records.md, "Tenant and environment"). A session names it in the
 * header or in the query.
 */
import type { Request } from 'express';
import type { LRUCache } from 'lru-cache';
import type { Permission } from '../../core/foundation/access/role.ts';
import { deriveSessionEnd, shouldRecordUse } from '../../core/foundation/access/session.ts';
import { FarthingError, invalid } from '../../core/foundation/error.ts';
import { type Milliseconds, toInstant } from '../../core/foundation/time/instant.ts';
import { createLru } from '../../storage/foundation/lru.ts';
import { hashApiKey } from '../../storage/foundation/secrets/api-key.ts';
import { hashSessionToken } from '../../storage/foundation/secrets/session-token.ts';
import type { Database } from '../../storage/foundation/stores.ts';
import {
  type AuthenticatedKey,
  findKeyHolder,
  findTokenHolder,
  isTenantEnvironment,
  updateKeyLastUsed,
} from '../../storage/models/operations/secret.ts';
import { findSessionHolder, updateSessionLastUsed } from '../../storage/models/operations/session.ts';
import { toFarthingError, unauthenticated } from './errors.ts';
import { checkAccess, hasAccess } from './permissions.ts';
import { RateLimits } from './rate-limit.ts';
import type { Services } from './services.ts';
import { checkConsoleRequest, findQueryEnvironment, peekSessionToken, readSessionToken } from './session-cookie.ts';
import { type Claims, readClaims, verifyToken } from './token.ts';

export type AuthenticatedPrincipal = AuthenticatedKey & { readonly environment_id: string };

/**
 * Time for which a cached holder of a key is current. A revoked key stops working at once (access-changes.ts), or after this time if the
 * process missed the notification.
 */
const FRESH_MS = 5_000;
/** Age of a cached holder from which the next request reloads it, before it expires. */
const RENEWED_MS = 2_500;
/** Age up to which cached callers can still send events while Postgres is unavailable and nothing can be loaded. */
const KNOWN_MS = 60_000;
const TRIED_EVERY_MS = 1_000;
const TOUCHED_EVERY_MS = 60_000;

/**
 * Holder of a key, the time it was loaded, and the time of the last attempt to load it. A `stale` entry may have changed since: it is
 * reloaded before use. The limit on wrong keys per address does not apply to this reload.
 */
type CachedKeyHolder = {
  readonly holder: AuthenticatedKey;
  readonly seen_ms: number;
  readonly tried_ms: number;
  readonly stale?: true;
};

const holders = new WeakMap<Database, LRUCache<string, CachedKeyHolder>>();
/** Hashes that matched no key recently: repeated attempts with a wrong key do not reach Postgres. */
const wrong = new WeakMap<Database, LRUCache<string, true>>();
const limits = new WeakMap<Database, RateLimits>();

/** One instance per process and database. */
export function getRateLimits({ postgres, config }: Services): RateLimits {
  return made(limits, postgres, () => new RateLimits(config));
}

export async function authenticate(
  request: Request,
  access: Permission,
  services: Services,
  now: Date,
): Promise<AuthenticatedPrincipal> {
  const holder = await resolveHolder(request, services, now);
  if (holder.expires_at !== null && toInstant(holder.expires_at) <= now.getTime())
    throw unauthenticated(holder.session_id === null ? 'the API key has expired' : SESSION_ENDED);
  checkAccess(access, holder);
  return { ...holder, environment_id: await resolveEnvironment(request, holder, access, services.postgres) };
}

/**
 * Authenticates synchronously if the key belongs to one environment and its holder is cached. Returns undefined if something must be loaded
 * or refused: then `authenticate` decides.
 */
export function findCachedPrincipal(
  { headers }: Pick<Request, 'headers'>,
  access: Permission,
  { postgres }: Pick<Services, 'postgres'>,
  now: Date,
): AuthenticatedPrincipal | undefined {
  // A request with a cookie is checked by `authenticate`.
  if (headers.cookie !== undefined && peekSessionToken({ headers }) !== undefined) return undefined;
  const key = findApiKey({ headers });
  const hash = key === null ? null : hashApiKey(key);
  const cached = hash === null ? undefined : getHolderCache(postgres).get(hash);
  if (hash === null || cached === undefined || cached.stale || !isFresh(cached, now.getTime())) return undefined;
  renewInTime(hash, cached, { postgres, now });
  const { holder } = cached;
  const { environment_id, secret_id, expires_at } = holder;
  const requested = headerValue(headers['x-environment-id']);
  if (secret_id === null || environment_id === null || (requested !== null && requested !== environment_id))
    return undefined;
  if (expires_at !== null && toInstant(expires_at) <= now.getTime()) return undefined;
  return hasAccess(access, holder) ? { ...holder, environment_id } : undefined;
}

/**
 * Tenant of the key or token, if this process has accepted it, however long ago. It authenticates nobody: it names the queue in which the
 * request waits for its authentication (admission.ts).
 */
export function findKnownTenant(
  { headers }: Pick<Request, 'headers'>,
  { postgres }: Pick<Services, 'postgres'>,
): string | undefined {
  const key = findApiKey({ headers });
  const token = key === null ? bearerToken({ headers }) : undefined;
  const session = key === null && token === undefined ? peekSessionToken({ headers }) : undefined;
  if (key === null && token === undefined && session === undefined) return undefined;
  const name =
    key !== null ? hashApiKey(key) : session !== undefined ? nameSession(session) : nameToken(readClaims(token!));
  return getHolderCache(postgres).peek(name, { allowStale: true })?.holder.tenant_id;
}

/** Reloads the holder before its entry expires; otherwise thousands of concurrent requests would wait for the reload. */
function renewInTime(
  hash: string,
  cached: CachedKeyHolder,
  { postgres, now }: Pick<HolderLookup, 'postgres' | 'now'>,
): void {
  const now_ms = now.getTime();
  if (now_ms - cached.seen_ms < RENEWED_MS || now_ms - cached.tried_ms < TRIED_EVERY_MS) return;
  // A failure is ignored: once the entry has expired, a request loads the holder itself and reports the error.
  refreshHolder(hash, cached, { postgres, now, find: () => loadKeyHolder(postgres, hash, now) }).catch(() => undefined);
}

function headerValue(value: string | string[] | undefined): string | null {
  return (typeof value === 'string' && value.trim()) || null;
}

/**
 * Marks the cached holders of keys as stale after a key, a user or the state of this tenant has changed; without a tenant, those of all
 * tenants.
 */
export function forgetKeys({ postgres }: Pick<Services, 'postgres'>, tenant_id?: string): void {
  changes++;
  const cached = holders.get(postgres);
  // Forgets which keys were wrong: a new key may have been tried before it existed.
  wrong.get(postgres)?.clear();
  for (const [name, known] of [...(cached?.entries() ?? [])])
    if (tenant_id === undefined || known.holder.tenant_id === tenant_id)
      cached!.set(name, { ...known, stale: true }, { noUpdateTTL: true });
}

/** Number of invalidations so far. It shows whether one happened during a query. */
let changes = 0;

async function resolveHolder(request: Request, services: Services, now: Date): Promise<AuthenticatedKey> {
  const key = findApiKey(request);
  const token = bearerToken(request);
  const { postgres } = services;
  const session = readSessionToken(request, services.config);
  if (session !== undefined) {
    // Either of them would act for another user than the caller may mean.
    if (key !== null || token !== undefined)
      throw invalid('Cookie', 'a request has the cookie of a session, or a key or token, never both');
    checkConsoleRequest(request, services.config);
    const hash = hashSessionToken(session);
    const find = () => loadSessionHolder(postgres, hash, now);
    const findNew = () => getRateLimits(services).guarded(request, find);
    return remembered(nameSession(session), { postgres, now, find, findNew });
  }
  if (key !== null) {
    const hash = hashApiKey(key);
    const find = () => loadKeyHolder(postgres, hash, now);
    const findNew = () => getRateLimits(services).guarded(request, find);
    return remembered(hash, { postgres, now, find, findNew });
  }
  if (!token) throw unauthenticated('the header x-api-key is missing, or Authorization: Bearer with a key or token');
  const claims = await verifyToken(services, token, now);
  return remembered(nameToken(claims), { postgres, now, find: () => holderOfToken(postgres, claims) });
}

/** Cache key of a token. The claims include the second at which the token was signed. */
const nameToken = (claims: Claims | undefined) => JSON.stringify(claims ?? null);

/** Cache key of a session. A session token that is sent as an API key finds nothing under it. */
const nameSession = (token: string) => `session ${hashSessionToken(token)}`;

const SESSION_ENDED = 'the session has ended: sign in again';

type HolderLookup = {
  readonly postgres: Database;
  readonly now: Date;
  find(): Promise<AuthenticatedKey>;
  /** Loads the holder if it is not cached. Cached holders are exempt from the wrong-key limit of their address. */
  findNew?(): Promise<AuthenticatedKey>;
};

async function remembered(name: string, lookup: HolderLookup): Promise<AuthenticatedKey> {
  const had = getHolderCache(lookup.postgres).get(name);
  // While one request reloads the entry, other requests use the old one, because an unresponsive Postgres would delay all of them.
  if (had && !had.stale && isFresh(had, lookup.now.getTime())) return had.holder;
  return refreshHolder(name, had, lookup);
}

async function refreshHolder(
  name: string,
  had: CachedKeyHolder | undefined,
  { postgres, now, find, findNew = find }: HolderLookup,
): Promise<AuthenticatedKey> {
  const cached = getHolderCache(postgres);
  const known = had?.stale ? undefined : had;
  const now_ms = now.getTime();
  if (known) cached.set(name, { ...known, tried_ms: now_ms }, { noUpdateTTL: true });
  const seen_changes = changes;
  try {
    const holder = await (had ? find() : findNew());
    // A value read before an invalidation must not be cached after it.
    if (changes === seen_changes) cached.set(name, { holder, seen_ms: now_ms, tried_ms: now_ms });
    return holder;
  } catch (error) {
    if (known && toFarthingError(error).code === 'service_unavailable') return known.holder;
    cached.delete(name);
    throw error;
  }
}

function isFresh({ seen_ms, tried_ms }: CachedKeyHolder, now_ms: number): boolean {
  return now_ms - seen_ms < FRESH_MS || now_ms - tried_ms < TRIED_EVERY_MS;
}

async function loadKeyHolder(database: Database, hash: string, now: Date): Promise<AuthenticatedKey> {
  const rejected = made(wrong, database, () => createLru(10_000, FRESH_MS));
  const seen_changes = changes;
  const isRejected = rejected.has(hash);
  const holder = isRejected ? undefined : await findKeyHolder(database, hash);
  if (!holder) {
    // A key that was created during the query must not be cached as wrong.
    if (!isRejected && changes === seen_changes) rejected.set(hash, true);
    throw unauthenticated('the API key is not valid');
  }
  if (holder.last_used_at === null || now.getTime() - toInstant(holder.last_used_at) > TOUCHED_EVERY_MS)
    await updateKeyLastUsed(database, holder.secret_id!, now);
  return holder;
}

/** Loads the user of a session and records its use. The end of the session moves with its use. */
async function loadSessionHolder(database: Database, hash: string, now: Date): Promise<AuthenticatedKey> {
  const holder = await findSessionHolder(database, hash);
  if (!holder || deriveSessionEnd(holder) <= now) throw unauthenticated(SESSION_ENDED);
  const isRecorded = shouldRecordUse(holder.last_used_at, now);
  if (isRecorded) await updateSessionLastUsed(database, holder.session_id, now);
  const used = isRecorded ? { ...holder, last_used_at: now.toISOString() } : holder;
  return { ...used, expires_at: deriveSessionEnd(used).toISOString() };
}

/** Loads the current roles. A changed password invalidates earlier tokens. */
async function holderOfToken(database: Database, claims: Claims): Promise<AuthenticatedKey> {
  const holder = await findTokenHolder(database, claims);
  if (!holder) throw unauthenticated('the token is not valid');
  const { password_changed_at, ...rest } = holder;
  if (password_changed_at !== null && wasIssuedBefore(claims, toInstant(password_changed_at)))
    throw unauthenticated('the password was changed since: sign in again');
  return { ...rest, environment_id: claims.environment_id };
}

/** Our tokens have milliseconds. One with whole seconds is from elsewhere or from an earlier version, and counts as of the end of its second. */
function wasIssuedBefore({ issued_at }: Claims, instant: Milliseconds): boolean {
  return issued_at < (Number.isInteger(issued_at) ? Math.floor(instant / 1000) : instant / 1000);
}

/** API key of the header `x-api-key`, or after `Bearer`. A JSON Web Token there has three parts, and a key has none. */
function findApiKey({ headers }: Pick<Request, 'headers'>): string | null {
  const key = headerValue(headers['x-api-key']);
  if (key !== null || headers.authorization === undefined) return key;
  const bearer = bearerToken({ headers });
  return bearer === undefined || bearer.split('.').length === 3 ? null : bearer;
}

/** Text after `Bearer`; the scheme name is case-insensitive. */
export function bearerToken({ headers }: Pick<Request, 'headers'>): string | undefined {
  return /^bearer +(\S+)$/i.exec(headers.authorization?.trim() ?? '')?.[1];
}

function getHolderCache(database: Database): LRUCache<string, CachedKeyHolder> {
  return made(holders, database, () => createLru(10_000, KNOWN_MS));
}

function made<Kind extends object>(of: WeakMap<Database, Kind>, database: Database, make: () => Kind): Kind {
  const known = of.get(database) ?? make();
  of.set(database, known);
  return known;
}

/**
 * Resolves the environment. The result is empty only if the access needs no environment: users, environments and tenants are not part of an
 * environment.
 */
async function resolveEnvironment(
  request: Request,
  holder: AuthenticatedKey,
  access: Permission,
  database: Database,
): Promise<string> {
  const requested = findRequestedEnvironment(request, holder);
  // Using the environment of the key instead of the requested one would write to an environment that the caller did not mean.
  if (
    holder.secret_id !== null &&
    holder.environment_id !== null &&
    requested !== null &&
    requested !== holder.environment_id
  )
    throw new FarthingError('permission_denied', `this API key is for the environment ${holder.environment_id} alone`, {
      details: { field: 'X-Environment-ID', environment_id: holder.environment_id },
    });
  const meant = holder.environment_id ?? requested;
  if (meant === null) {
    if (/^(tenant|user|self|environment):/.test(access)) return '';
    throw new FarthingError('permission_denied', 'no environment: send the header X-Environment-ID');
  }
  // A key's environment was checked when the key was created.
  if (holder.secret_id !== null && holder.environment_id !== null) return meant;
  if (!(await isTenantEnvironment(database, holder.tenant_id, meant)))
    throw new FarthingError('permission_denied', 'this environment does not belong to the tenant');
  return meant;
}

/** A session may name its environment in the query, too. */
function findRequestedEnvironment(request: Request, { session_id }: AuthenticatedKey): string | null {
  const inHeader = request.get('x-environment-id')?.trim() || null;
  if (session_id === null) return inHeader;
  const inQuery = findQueryEnvironment(request);
  if (inHeader !== null && inQuery !== null && inHeader !== inQuery)
    throw invalid('environment_id', 'is another environment than that of the header X-Environment-ID');
  return inHeader ?? inQuery;
}
