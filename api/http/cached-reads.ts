/**
 * Serves the reads that precede every request of a customer: balances and entitlements. If all of their data is cached (storage/cache),
 * they are answered before the framework, which costs several times as much as the answer. The shared functions of all routes check keys,
 * permissions, limits, scope and shapes, and write headers, log and metrics. Any other request, including one to be refused, goes to the
 * framework (docs/decisions/0007-cached-answers.md).
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Request, RequestHandler, Response } from 'express';
import { z } from 'zod';
import type { Permission } from '../../core/foundation/access/role.ts';
import { errorRecord, type FarthingError } from '../../core/foundation/error.ts';
import { viewCached } from '../../storage/cache/cached-answers.ts';
import { type AuthenticatedPrincipal, findCachedPrincipal, getRateLimits } from './auth.ts';
import { endCompressed, isCompressed } from './compress.ts';
import { setErrorHeaders, toFarthingError } from './errors.ts';
import type { HttpMetrics } from './metrics.ts';
import { parseQuery } from './query-string.ts';
import { buildAnswerLine, REQUEST_ID, readRequestId } from './request-log.ts';
import type { CachedReadContext, Route } from './route.ts';
import { type CachedAnswerRead, prepareText, serializeCachedRead } from './serialized-cache.ts';
import type { Services } from './services.ts';

/** Header names and values, alternating. */
type Headers = readonly string[];
type CachedReadsOptions = {
  readonly routes: readonly Route[];
  readonly metrics: HttpMetrics;
  /** Headers of every answer. */
  readonly headers: Headers;
  /** Computes an answer that is not cached. Concurrent computations share their statements, so they are not limited (admission.ts). */
  readonly uncached: RequestListener;
  /** Answers any other request. */
  readonly otherwise: RequestListener;
};
type CachedReadMatch = {
  readonly route: CachedRoute;
  readonly input: { readonly params: unknown; readonly query: unknown };
};

export function serveCachedReads(services: Services, mounted: CachedReadsOptions): RequestListener {
  const routes = mounted.routes.flatMap((route) => toCachedRoute(route) ?? []);
  return (request, response) => {
    const matched = request.method === 'GET' ? matchCachedRead(routes, request.url!) : undefined;
    const principal =
      matched && findCachedPrincipal(request as Request, matched.route.access, services, services.clock());
    if (matched === undefined || principal === undefined) return mounted.otherwise(request, response);
    answerFromCache(request, response, {
      services,
      mounted,
      matched,
      principal,
      began: performance.now(),
    });
  };
}

type CachedReadExchange = {
  readonly services: Services;
  readonly mounted: CachedReadsOptions;
  readonly matched: CachedReadMatch;
  readonly principal: AuthenticatedPrincipal;
  readonly began: number;
};

/**
 * Answers from the cache. A cache miss or failure goes to the framework, which reports the error. The text of the loaded record is then
 * serialized for the next request.
 */
function answerFromCache(request: IncomingMessage, response: ServerResponse, answering: CachedReadExchange): void {
  const { services, mounted, matched, principal } = answering;
  const now = services.clock();
  const { tenant_id, environment_id } = principal;
  viewCached(services, { tenant_id, environment_id, now }, (cache) => {
    const read = cache === null ? undefined : tryReadCached(matched, { cache, now });
    if (read === undefined) {
      response.once('finish', () => prepare(response, answering));
      return mounted.uncached(request, response);
    }
    try {
      answer(request, response, { answering, read });
    } catch (error) {
      // The error is handled here, so that other requests in the same batch do not fail because of it.
      services.logger.error({ err: error }, 'request failed');
      response.destroy();
    }
  });
}

/** Serializes the answer in advance, for later reads. This takes microseconds, after a load that took milliseconds. */
function prepare({ statusCode }: ServerResponse, { services, matched, principal }: CachedReadExchange): void {
  if (statusCode !== matched.route.route.success) return;
  const { tenant_id, environment_id } = principal;
  const now = services.clock();
  viewCached(services, { tenant_id, environment_id, now }, (cache) => {
    const read = cache === null ? undefined : tryReadCached(matched, { cache, now });
    if (!read) return;
    try {
      prepareText(matched.route.route.answer!, read);
    } catch (error) {
      services.logger.error({ err: error }, 'an answer that was given cannot be prepared for who asks next');
    }
  });
}

function tryReadCached({ route, input }: CachedReadMatch, context: CachedReadContext): CachedAnswerRead | undefined {
  try {
    return route.route.readCached!(input as never, context);
  } catch {
    return undefined;
  }
}

type CachedRoute = {
  readonly path: string;
  readonly access: Permission;
  readonly pattern: RegExp;
  readonly names: readonly string[];
  readonly queryNames: ReadonlySet<string>;
  readonly route: Route;
};

/** Pattern of a path parameter; it matches unescaped ids only. */
const PARAMETER = '([A-Za-z0-9_]{1,100})';

function toCachedRoute(route: Route): CachedRoute | null {
  const { readCached: cache, path, access, query } = route;
  if (cache === undefined || access === 'public') return null;
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name!);
  const pattern = new RegExp(`^/v1${path.replace(/:\w+/g, PARAMETER)}$`);
  const queryNames = new Set(query instanceof z.ZodObject ? Object.keys(query.shape) : []);
  return { path, access, pattern, names, queryNames, route };
}

function matchCachedRead(routes: readonly CachedRoute[], url: string): CachedReadMatch | undefined {
  const at = url.indexOf('?');
  const path = at < 0 ? url : url.slice(0, at);
  for (const route of routes) {
    const match = route.pattern.exec(path);
    if (match === null) continue;
    const input = parseInput(route, match, at < 0 ? null : url.slice(at + 1));
    return input && { route, input };
  }
  return undefined;
}

function parseInput({ names, queryNames, route }: CachedRoute, match: RegExpExecArray, text: string | null) {
  const params = Object.fromEntries(names.map((name, index) => [name, match[index + 1]]));
  // Escaped text may contain anything.
  if (text !== null && !/^[\w=&.,-]*$/.test(text)) return undefined;
  const given = text === null ? {} : parseQuery(text);
  if (Object.keys(given).some((name) => !queryNames.has(name))) return undefined;
  const query = route.query?.safeParse(given);
  if (query?.success === false) return undefined;
  return { params, query: query?.data };
}

/** Headers as a flat list of names and values, which writeHead accepts. */
class HeaderList {
  readonly all: string[];

  constructor(begun: Headers) {
    this.all = [...begun];
  }

  set(name: string, value: string): void {
    this.all.push(name, value);
  }
}

/** Answers a request synchronously, because nothing in the answer needs to be awaited. */
function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { answering, read }: { readonly answering: CachedReadExchange; readonly read: CachedAnswerRead },
): void {
  const { services, mounted, matched, principal, began } = answering;
  const { route, path } = matched.route;
  const headers = new HeaderList(mounted.headers);
  const request_id = readRequestId(request);
  headers.set(REQUEST_ID, request_id);
  let body: string;
  let http_status: number = route.success;
  try {
    getRateLimits(services).countRequest(principal.secret_id ?? principal.user_id, headers);
    body = serializeCachedRead(route.answer!, read);
  } catch (error) {
    const known: FarthingError = toFarthingError(error);
    if (known.http_status_code >= 500) services.logger.error({ err: error, request_id }, 'request failed');
    setErrorHeaders(headers, known);
    http_status = known.http_status_code;
    body = JSON.stringify(errorRecord(known));
  }
  headers.set('Content-Type', 'application/json; charset=utf-8');
  headers.set('Content-Length', String(Buffer.byteLength(body)));
  if (isCompressed(request, body)) sendCompressed(request, response, { http_status, headers: headers.all, body });
  else {
    response.writeHead(http_status, headers.all);
    response.end(body);
  }
  const duration_ms = performance.now() - began;
  mounted.metrics.measured({ method: 'GET', route: path, status: http_status, seconds: duration_ms / 1000 });
  const level = http_status >= 500 ? 'error' : 'info';
  if (!services.logger.isLevelEnabled(level)) return;
  const scope = { tenant_id: principal.tenant_id, environment_id: principal.environment_id };
  const logged = { scope, method: request.method, url: request.url!, route: path, http_status };
  const line = { request_id, ...buildAnswerLine({ ...logged, duration_ms: Math.round(duration_ms) }) };
  services.logger[level](line, 'request completed');
}

type TextAnswer = { readonly http_status: number; readonly headers: Headers; readonly body: string };

function sendCompressed(
  request: IncomingMessage,
  response: ServerResponse,
  { http_status, headers, body }: TextAnswer,
): void {
  response.statusCode = http_status;
  for (let at = 0; at < headers.length; at += 2) response.setHeader(headers[at]!, headers[at + 1]!);
  endCompressed(request, response, body);
}

/** Collects the headers that `handlers` set on every answer, regardless of the request. */
export function collectHeaders(handlers: readonly RequestHandler[]): (readonly [name: string, value: string])[] {
  const headers = new Map<string, string>();
  const set = (name: string, value: string) => void headers.set(name, value);
  const response = { set, setHeader: set, removeHeader: (name: string) => headers.delete(name) } as unknown as Response;
  for (const handler of handlers) void handler({ method: 'GET', headers: {} } as Request, response, () => undefined);
  return [...headers];
}
