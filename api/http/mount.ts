/** Mounts every route: authentication, decoding by the route's shapes, the handler, encoding by the route's shape. */
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { z } from 'zod';
import { errorRecord, FarthingError, invalid } from '../../core/foundation/error.ts';
import { withField } from '../../core/foundation/field-at-fault.ts';
import { groupBy } from '../../core/foundation/group-by.ts';
import { jsonText } from '../../core/foundation/json/json-text.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import { parseShape } from '../../core/foundation/shaped.ts';
import { checkTexts } from '../../core/foundation/texts.ts';
import { runYielding } from '../../storage/concurrency/time-slicer.ts';
import { runAs } from '../../storage/foundation/request-context.ts';
import { type AuthenticatedPrincipal, authenticate, findCachedPrincipal, getRateLimits } from './auth.ts';
import { BODY_LIMIT, checkFileType, checkJsonBytes, parseJsonBody, RAW_BODY_LIMIT, readBytes } from './body.ts';
import { endCompressed } from './compress.ts';
import type { Effects } from './effects.ts';
import { refuseMethod, setErrorHeaders, toFarthingError, wrongMethod } from './errors.ts';
import { answerOnce, type Reply } from './idempotency.ts';
import { replayRequest } from './idempotency-strategy.ts';
import { checkKeys, describeUnknownParameter } from './ignored-keys.ts';
import { isRequestByTheMachine, loadRequestClock, waitForPriorEvents } from './instants.ts';
import { type Access, AnswerWithStatus, type Context, type Route } from './route.ts';
import { RouteTable } from './route-table.ts';
import type { Services } from './services.ts';
import { buildTarget, findEntityTag, requireCompared } from './target.ts';

/** Answers requests of all routes, relative to the base URL. A path without a route goes to the next handler. */
export function mountRoutes(routes: readonly Route[], services: Services): RequestHandler {
  checkDistinct(routes);
  const static_routes = groupBy(
    routes.filter(({ path }) => !path.includes(':')),
    ({ path }) => path.split('/').length,
  );
  const table = new RouteTable(
    routes.map((route): MountedRoute => {
      const limit = route.body_limit ?? (route.raw_body ? RAW_BODY_LIMIT : BODY_LIMIT);
      return {
        ...route,
        readable: readableKeys(route, routes),
        static_paths: findStaticPaths(route, static_routes),
        // A signature covers the received bytes, so they are not inflated before the sender is authenticated.
        readBody: readBytes(limit, { inflate: route.signed === undefined }),
      };
    }),
  );
  return (request, response, next) => {
    try {
      const match = table.find(request.method, request.path);
      if (match === undefined) return refuseOtherMethods(table, { request, response, next });
      const { route, params } = match;
      refuseStaticPath(route, request, response);
      request.params = params;
      response.locals.route = route.path;
      const context = createContext(route, request, response, services);
      if (!(context instanceof Promise)) return readBodyAndAnswer(route, context, next);
      context.then((loaded) => readBodyAndAnswer(route, loaded, next)).catch(next);
    } catch (error) {
      next(error);
    }
  };
}

function readBodyAndAnswer(route: MountedRoute, context: Context, next: NextFunction): void {
  const { request, response } = context;
  const answered = (fault?: unknown) => {
    if (fault) return next(fault);
    answerFor(route, context).catch(next);
  };
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
  if (length === undefined && encoding === undefined) answered();
  else {
    if (request.headers.expect !== undefined) response.writeContinue();
    route.readBody(request, response, answered);
  }
}

type MountedRoute = Route & {
  readonly readable: readonly string[];
  /** Static paths that match this route's pattern, with their methods. */
  readonly static_paths: ReadonlyMap<string, readonly string[]>;
  readonly readBody: RequestHandler;
};

/** `static_routes` are grouped by their number of segments. */
function findStaticPaths(
  { method, path }: Route,
  static_routes: ReadonlyMap<number, readonly Route[]>,
): Map<string, string[]> {
  // A static path matches itself alone.
  if (!path.includes(':')) return new Map();
  const own = path.split('/');
  const prefix = path.slice(0, path.indexOf(':'));
  const fits = (segments: readonly string[]) =>
    own.every((part, index) => part.startsWith(':') || part === segments[index]);
  const others = (static_routes.get(own.length) ?? []).filter(
    (one) => one.path.startsWith(prefix) && fits(one.path.split('/')),
  );
  const methods = groupBy(others, (one) => one.path);
  const free = [...methods].filter(([, some]) => !some.some((one) => one.method === method));
  return new Map(free.map(([word, some]) => [word, some.map((one) => one.method.toUpperCase())]));
}

/**
 * Refuses a static path, such as `search`, where a record's id is expected. Such a request is answered 405 with the methods of the
 * static path, instead of 404.
 */
function refuseStaticPath({ static_paths, ids_are_texts }: MountedRoute, request: Request, response: Response): void {
  const methods = ids_are_texts ? undefined : static_paths.get(request.path.replace(/\/$/, ''));
  if (methods) refuseMethod(request, response, methods);
}

/** Lists the read-only keys that an update accepts: a record may be sent back as it was read. */
function readableKeys({ method, path }: Route, routes: readonly Route[]): string[] {
  if (method !== 'put') return [];
  const ofRecord = routes.filter((route) => route.path === path);
  return ofRecord.flatMap(({ answer }) => (answer instanceof z.ZodObject ? Object.keys(answer.shape) : []));
}

type UnmatchedRequest = { readonly request: Request; readonly response: Response; readonly next: NextFunction };

/** Refuses a method that a path does not have. A path may match several routes, and the allowed methods are those of all matches. */
function refuseOtherMethods(table: RouteTable<MountedRoute>, { request, response, next }: UnmatchedRequest): void {
  const allowed = table
    .list(request.path)
    .filter(({ static_paths, ids_are_texts }) => ids_are_texts || !static_paths.has(request.path))
    .map(({ method }) => method.toUpperCase());
  if (allowed.length > 0) refuseMethod(request, response, allowed);
  next();
}

/**
 * Creates the context, without a promise if the caller and the clock of its environment are cached. The key, or the presence of a signature,
 * is checked before a byte of the body is read.
 */
function createContext(
  route: Route,
  request: Request,
  response: Response,
  services: Services,
): Context | Promise<Context> {
  const received_at = services.clock();
  // logRequests set the id, and it is text.
  const base: ContextBase = { services, received_at, request_id: request.id as string, request, response };
  if (route.signed?.some((name) => !request.get(name)))
    throw new FarthingError('permission_denied', 'the signature is not valid', { http_status_code: 401 });
  const { access } = route;
  if (access === 'public') return toContext(base, NOBODY, null);
  const known = findCachedPrincipal(request, access, services, received_at);
  if (known !== undefined) return createContextFor(known, access, base);
  return authenticate(request, access, services, received_at).then((caller) => createContextFor(caller, access, base));
}

type ContextBase = Pick<Context, 'services' | 'received_at' | 'request_id' | 'request' | 'response'>;
type Caller = Pick<Context, 'scope' | 'principal'>;

const NOBODY: Caller = {
  scope: { tenant_id: '', environment_id: '' },
  principal: { user_id: '', tenant_id: '', roles: [], secret_id: null, session_id: null },
};

function createContextFor(
  { tenant_id, environment_id, user_id, roles, secret_id, session_id }: AuthenticatedPrincipal,
  access: Access,
  base: ContextBase,
): Context | Promise<Context> {
  const { services, response, received_at } = base;
  getRateLimits(services).countRequest(secret_id ?? user_id, response);
  const scope: Scope = { tenant_id, environment_id };
  response.locals.scope = scope;
  // A page of another origin of the same site may not embed what the cookie shows.
  if (session_id !== null) response.setHeader('Cross-Origin-Resource-Policy', 'same-origin');
  const caller: Caller = { scope, principal: { user_id, tenant_id, roles, secret_id, session_id } };
  const clocked = { access, scope, services, response, received_at };
  if (isRequestByTheMachine(clocked)) return toContext(base, caller, null);
  return loadRequestClock(clocked).then((clock) => toContext(base, caller, clock));
}

function toContext(base: ContextBase, { scope, principal }: Caller, clock: Context['clock']): Context {
  const { request, request_id } = base;
  return {
    ...base,
    scope,
    principal,
    clock,
    now: clock?.now ?? base.received_at,
    // Made on demand, because few requests log a line of their own.
    get log() {
      return request.log.child({ request_id, ...(scope.tenant_id === '' ? {} : scope) });
    },
  };
}

/** Answers with the caller as the request context; a public route has no caller. */
async function answerFor(route: MountedRoute, context: Context): Promise<void> {
  if (route.access === 'public') return answer(route, context);
  const { scope, principal, request_id, clock } = context;
  const { user_id, secret_id } = principal;
  const target = buildTarget(route, context);
  return runAs({ scope, user_id, secret_id, request_id, clock, target }, () => answer(route, context));
}

async function answer(route: MountedRoute, context: Context): Promise<void> {
  const reply = await answerOnce(route, context, (done) => produce(route, context, done));
  // The route has streamed its answer itself.
  if (reply === null) return;
  const { response } = context;
  if (reply.replayed) response.set('Idempotency-Replayed', 'true');
  response.statusCode = reply.http_status;
  if (reply.body === null) return void response.end();
  response.setHeader('Content-Type', 'application/json; charset=utf-8');
  response.setHeader('Content-Length', Buffer.byteLength(reply.body));
  endCompressed(context.request, response, reply.body);
}

/** Produces the answer. `done` has the effects that an earlier attempt of the request committed; null if there are none. */
async function produce(route: MountedRoute, context: Context, done: Effects | null): Promise<Reply | null> {
  const { response } = context;
  let input: ReturnType<typeof decode> | undefined;
  try {
    input = decode(route, context);
    if (context.clock) await waitForPriorEvents(route, context);
    const result = await (done
      ? replayRequest(route, done, { input, context })
      : route.handle(input as never, context));
    if (response.headersSent) return null;
    requireCompared(route);
    const { http_status, value } =
      result instanceof AnswerWithStatus ? result : { http_status: route.success as number, value: result };
    if (http_status === 204) return { http_status, body: null };
    const etag = findEntityTag(route, value);
    if (etag !== undefined) response.setHeader('ETag', etag);
    const steps = jsonText(route.answer ?? ANYTHING, value);
    const first = steps.next();
    // An answer may be megabytes, so its encoding yields to other requests.
    const text = first.done ? first.value : await runYielding(steps, { asker: context.scope.tenant_id });
    return { http_status, body: text };
  } catch (error) {
    const known = withField(notFoundOr405(error, route, context), route.raw_body ? undefined : input?.body);
    if (known.http_status_code >= 500 || response.headersSent) throw error;
    setErrorHeaders(response, known);
    return { http_status: known.http_status_code, body: JSON.stringify(errorRecord(known)) };
  }
}

/**
 * Returns the error to throw. If the path equals a static route and no record has that id, it is 405 for the static route instead of 404.
 */
function notFoundOr405(error: unknown, { static_paths }: MountedRoute, { request, response }: Context): FarthingError {
  const known = toFarthingError(error);
  const methods = known.code === 'not_found' ? static_paths.get(request.path) : undefined;
  return methods ? wrongMethod(request, response, methods) : known;
}

const ANYTHING = z.unknown();

function decode(route: MountedRoute, context: Context) {
  const { request } = context;
  const { params } = request;
  const query = readQuery(route, context);
  refuseUnknownParameters(route, query);
  return {
    params: parsed(route.params, params, 'path'),
    query: parsed(route.query, query, 'query'),
    body: route.raw_body ? rawBody(route, request) : parsedBody(route, context),
  };
}

/** Query of the route. A session may have named its environment there (auth.ts). */
function readQuery({ query: shape }: Route, { request, principal }: Context): object {
  const { query } = request;
  if (principal.session_id === null || (shape instanceof z.ZodObject && 'environment_id' in shape.shape)) return query;
  const { environment_id: _, ...own } = query;
  return own;
}

/**
 * Refuses unknown parameters. A misspelled parameter would filter nothing, so the caller would mistake all records for the filtered ones.
 */
function refuseUnknownParameters({ query }: Route, given: object): void {
  if (query !== undefined && !(query instanceof z.ZodObject)) return;
  const names = Object.keys(query?.shape ?? {});
  for (const name of Object.keys(given))
    if (!names.includes(name)) throw invalid(name, describeUnknownParameter(name, names));
}

/** Returns the unparsed bytes for a route that reads them itself, and checks their type. */
function rawBody(route: MountedRoute, request: Request): Buffer {
  request.body ??= Buffer.alloc(0);
  const contentType = request.get('content-type');
  if (route.takes_file) checkFileType(request.body, contentType, Object.keys(route.takes_file));
  else if (route.takes_bytes === undefined || !request.is(route.takes_bytes)) checkJsonBytes(request.body, contentType);
  return request.body;
}

/**
 * Refuses keys in the body of a route without a body shape, because they may be misplaced query parameters. The body must be JSON, or
 * absent.
 */
function refuseKeys(context: Context): undefined {
  const { request } = context;
  const body = parseJsonBody(request.body, request.get('content-type'));
  if (body === undefined || body === null) return;
  if (typeof body !== 'object' || Array.isArray(body)) throw invalid('body', 'must be an object, and may be left out');
  checkKeys(NO_KEYS, body, context);
}

const NO_KEYS = z.object({});

function jsonBody(shape: z.ZodType, request: Request): unknown {
  const body = parseJsonBody(request.body, request.get('content-type'));
  // A request may omit the body. A shape that accepts undefined gets undefined, and any other shape gets an empty object.
  if (body !== undefined) return body;
  return shape.safeParse(undefined).success ? undefined : {};
}

function parsedBody(route: MountedRoute, context: Context): unknown {
  if (!route.body) return refuseKeys(context);
  const body = jsonBody(route.body, context.request);
  checkTexts(body, []);
  // Keys are checked before the shape, which would report the missing key and not name the misspelled one.
  const { services, response } = context;
  checkKeys(route.body, body, { services, response, readable: route.readable });
  return parseShape(route.body, body, 'body');
}

function parsed(shape: Route['body'], value: unknown, part: string): unknown {
  if (!shape) return undefined;
  checkTexts(value, []);
  return parseShape(shape, value, part);
}

function checkDistinct(routes: readonly Route[]): void {
  const seen = new Set<string>();
  for (const { method, path, operation_id } of routes) {
    for (const name of [operation_id, `${method} ${path.replace(/:\w+/g, ':')}`]) {
      if (seen.has(name)) throw new Error(`two routes are called ${name}`);
      seen.add(name);
    }
  }
}
