/**
 * Idempotency-Key on every POST: the first answer is stored for 48 hours and returned again for an equal request. The database decides
 * which request is the first, so any number of processes may share the work; a process that dies with a key loses it at the end of its
 * lease. A refused or failed attempt is not stored: the next attempt runs, even with a corrected body. If an attempt committed effects but
 * its answer was not stored, the next attempt does not repeat them; the route's strategy completes it (idempotency-strategy.ts).
 */
import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes, randomUUID } from 'node:crypto';
import type { Request } from 'express';
import { FarthingError, invalid } from '../../core/foundation/error.ts';
import { formatId, type IdKind } from '../../core/foundation/id.ts';
import { type RequestKey, runUnderKey } from '../../storage/foundation/request-context.ts';
import {
  type Claim,
  type ClaimVerdict,
  claimKey,
  endLease,
  LEASE_SECONDS,
  recordClaimAnswer,
  releaseKey,
  renewLease,
} from '../../storage/models/foundation/idempotency-key.ts';
import { deleteEffects, loadEffects } from '../../storage/models/foundation/request-effects.ts';
import { bearerToken } from './auth.ts';
import { ceHeaderText } from './ce-headers.ts';
import { Effects } from './effects.ts';
import { isNoted } from './idempotency-strategy.ts';
import type { Context, Route } from './route.ts';
import { readSessionToken } from './session-cookie.ts';

/** An answer ready to be sent. `body` is JSON text, null when there is none. */
export type Reply = { readonly http_status: number; readonly body: string | null; readonly replayed?: boolean };

const KEY_MAX = 255;

/** Runs the request. If an earlier attempt committed effects (`done`), only its unfinished work is completed. */
type Produce = (done: Effects | null) => Promise<Reply | null>;

/** Runs the request or replays its stored answer. Without the header the request simply runs. */
export function answerOnce(route: Route, context: Context, produce: Produce): Promise<Reply | null> {
  // Callers of a public route cannot be distinguished, so no stored answer may be returned to them.
  const applies = route.method === 'post' && route.access !== 'public';
  const key = applies ? context.request.get('idempotency-key') : undefined;
  return key === undefined ? produce(null) : answerUnderKey(key, route, context, produce);
}

async function answerUnderKey(key: string, route: Route, context: Context, produce: Produce): Promise<Reply | null> {
  if (key.length === 0 || key.length > KEY_MAX)
    throw invalid('Idempotency-Key', `must have 1 to ${KEY_MAX} characters`);
  const claim = buildClaim(key, context);
  const verdict = await claimKey(context.services.postgres, claim);
  return verdict.kind === 'ours' ? handle(claim, route, context, produce) : replayAnswer(verdict, route, context);
}

/** Handles the request that owns the key. Its answer is stored unless it was refused, failed on the server or was streamed. */
async function handle(claim: Claim, route: Route, context: Context, produce: Produce): Promise<Reply | null> {
  const stopRenewing = keepRenewing(claim, context);
  const { postgres } = context.services;
  try {
    const effects = isNoted(route) ? await loadEffects(postgres, claim, claim.now) : null;
    const key: RequestKey = { ...claim, has_effects: effects !== null, goes_on: effects !== null };
    const produced = () => produce(effects && new Effects(effects));
    const reply = await (isNoted(route) ? runUnderKey(key, produced) : produced()).catch(async (error: unknown) => {
      await logFailure(context, release(claim, key, context));
      throw error;
    });
    const isDone = reply !== null && reply.http_status < 400;
    await logFailure(context, isDone ? keep(reply, { claim, key, route, context }) : release(claim, key, context));
    return reply && isDone && effects ? { ...reply, replayed: true } : reply;
  } finally {
    stopRenewing();
  }
}

/** Releases the key. Committed effects stay recorded, and the next request with the key resumes from them. */
async function release(claim: Claim, { has_effects }: RequestKey, { services: { postgres } }: Context): Promise<void> {
  const isDone = has_effects && (await loadEffects(postgres, claim, claim.now)) !== null;
  await (isDone ? endLease(postgres, claim) : releaseKey(postgres, claim));
}

type AnsweredRequest = { claim: Claim; key: RequestKey; route: Route; context: Context };

async function keep({ http_status, body }: Reply, { claim, key, route, context }: AnsweredRequest): Promise<void> {
  const { postgres } = context.services;
  await recordClaimAnswer(postgres, claim, { http_status, answer: stored(body, route, context) });
  if (key.has_effects) await deleteEffects(postgres, claim);
}

/**
 * Logs a failure to store the outcome of a request under its key. The effects of the request are committed in any case,
 * so the caller gets the true answer. The lease of the key expires by itself.
 */
async function logFailure(context: Context, note: Promise<void>): Promise<void> {
  await note.catch((error) => context.log.error({ err: error }, 'the outcome of an idempotent request was not kept'));
}

function keepRenewing(claim: Claim, { services, log }: Context): () => void {
  const renew = () => {
    renewLease(services.postgres, claim).catch((error) => log.warn({ err: error }, 'lease not renewed'));
  };
  const renewal = setInterval(renew, (LEASE_SECONDS * 1000) / 3);
  return () => clearInterval(renewal);
}

function replayAnswer(verdict: Exclude<ClaimVerdict, { kind: 'ours' }>, route: Route, context: Context): Reply {
  if (verdict.kind === 'in_flight') {
    context.response.set('Retry-After', '1');
    throw new FarthingError('version_conflict', 'a request with this Idempotency-Key is being handled');
  }
  if (verdict.kind === 'another_request')
    throw new FarthingError('validation_error', 'Idempotency-Key: was used for another request', {
      http_status_code: 422,
      details: { field: 'Idempotency-Key' },
    });
  const body = verdict.answer === null ? null : restored(verdict.answer, route, context);
  return { http_status: verdict.http_status, body, replayed: true };
}

/** Idempotency key of the action: from the body, or derived from the header so that a repeated request is recognized. */
export function withInnerKey<Request extends { idempotency_key: string | null }>(
  request: Request,
  context: Context,
): Request {
  const key = context.request.get('idempotency-key');
  if (request.idempotency_key !== null || key === undefined) return request;
  return { ...request, idempotency_key: `request-${deriveKeyId(key, context).slice(0, 40)}` };
}

/**
 * Identity of a repeated request, independent of process and time: hash of its Idempotency-Key and its bytes. Null without the header. It
 * includes the bytes, because the key of a refused request may be sent again with different bytes.
 */
export function requestIdentity(context: Context): string | null {
  const key = context.request.get('idempotency-key');
  return key === undefined ? null : sha256(`${deriveKeyId(key, context)}\n${requestHash(context.request)}`);
}

const TIME_BYTES = 6;

/** Deterministic id derived from a text, such as the identity of a request. */
export function deriveId(kind: IdKind, text: string): string {
  const hash = createHash('sha256').update(text).digest();
  // The timestamp part comes from the hash, because a repeated request arrives at a different time.
  return formatId(kind, hash.readUIntBE(0, TIME_BYTES), hash.subarray(TIME_BYTES));
}

function deriveKeyId(key: string, { request, scope, principal }: Context): string {
  const { tenant_id, environment_id } = scope;
  return sha256(JSON.stringify([tenant_id, environment_id, principal.user_id, request.method, request.path, key]));
}

function buildClaim(key: string, context: Context): Claim {
  const { request, scope, received_at: now } = context;
  const { tenant_id, environment_id } = scope;
  const id = deriveKeyId(key, context);
  return { id, tenant_id, environment_id, request_hash: requestHash(request), holder: randomUUID(), now };
}

/** Hash of the query string, the ce-headers and the raw bytes. */
function requestHash(request: Request): string {
  const hash = createHash('sha256')
    .update((request.originalUrl.split('?')[1] ?? '') + ceHeaderText(request))
    .update('\n');
  return hash.update(Buffer.isBuffer(request.body) ? request.body : '').digest('hex');
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/**
 * An answer that contains a secret (a new API key) is stored encrypted with the caller's API key, token or cookie, which is not stored. A reader of
 * the table learns nothing, and a caller that lost the answer gets it again.
 */
function stored(body: string | null, route: Route, context: Context): Buffer | null {
  if (body === null) return null;
  if (!route.shows_secret) return Buffer.from(body);
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', sealingKey(context), nonce);
  return Buffer.concat([nonce, cipher.update(body), cipher.final(), cipher.getAuthTag()]);
}

function restored(answer: Buffer, route: Route, context: Context): string {
  if (!route.shows_secret) return answer.toString();
  try {
    const decipher = createDecipheriv('aes-256-gcm', sealingKey(context), answer.subarray(0, 12));
    decipher.setAuthTag(answer.subarray(-16));
    return Buffer.concat([decipher.update(answer.subarray(12, -16)), decipher.final()]).toString();
  } catch {
    throw new FarthingError('version_conflict', 'the secret of this answer was shown to another API key of this user');
  }
}

function sealingKey({ request, services }: Context): Buffer {
  const secret =
    readSessionToken(request, services.config) ?? (request.get('x-api-key')?.trim() || bearerToken(request));
  return createHmac('sha256', secret ?? '')
    .update(request.get('idempotency-key') ?? '')
    .digest();
}
