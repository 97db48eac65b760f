/**
 * The HTTP interface of a process: wires its parts in the order in which a request passes them. Operations are answered before the router of
 * the framework, which costs a fifth of a small request; pages and errors of unknown paths are left to it.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import cors from 'cors';
import express, { type Express, type Request, type RequestHandler, type Response } from 'express';
import helmet from 'helmet';
import type { Config } from '../config.ts';
import { canShowMetrics } from '../process/process-door.ts';
import { isTracing } from '../tracing/spans.ts';
import { limitLoad } from './http/admission.ts';
import { collectHeaders, serveCachedReads } from './http/cached-reads.ts';
import { compressAnswers } from './http/compress.ts';
import { serveConsole } from './http/console.ts';
import { docsRoutes } from './http/docs.ts';
import { getOnly, refuseUnknownPath, sendError } from './http/errors.ts';
import { healthRoutes } from './http/health.ts';
import { type HttpMetrics, httpMetrics } from './http/metrics.ts';
import { mountRoutes } from './http/mount.ts';
import { openApiDocument } from './http/openapi.ts';
import { parseQuery } from './http/query-string.ts';
import { logRequests } from './http/request-log.ts';
import type { Route } from './http/route.ts';
import type { Services } from './http/services.ts';
import { traceRequests } from './http/trace-requests.ts';
import { routes as allRoutes } from './resources.ts';

/** Request listener of a server of `makeHttpServer`. Answers from the cache bypass the framework. */
export function buildListener(services: Services, routes: readonly Route[] = allRoutes): RequestListener {
  const metrics = httpMetrics();
  const headers = [...COMMON_HEADERS, NO_CACHING].flat();
  const app = buildApp(services, routes, metrics);
  const otherwise = limitLoad(services, { routes, headers, listener: app });
  // With tracing, every request goes through the framework, because its handlers create the spans.
  if (isTracing() || services.usage_cache === undefined) return otherwise;
  return serveCachedReads(services, { routes, metrics, headers, uncached: app, otherwise });
}

export function buildApp(
  services: Services,
  routes: readonly Route[] = allRoutes,
  metrics: HttpMetrics = httpMetrics(),
): RequestListener {
  const app = express();
  app.disable('x-powered-by');
  app.set('query parser', parseQuery);
  app.set('trust proxy', services.config.TRUSTED_PROXIES);
  const operations = withoutCaching(mountRoutes(routes, services));
  mountPages(app, { services, routes, metrics, operations });
  const log = logRequests(services.logger);
  const answer = answerOperations(operations);
  const begin: RequestHandler = isTracing()
    ? (request, response, next) => traceRequests(request, response, () => answer(request, response, next))
    : answer;
  return (incoming, outgoing) => {
    const { request, response } = toExpress(app, incoming, outgoing);
    log(request, response);
    metrics.measure(request, response);
    setCommonHeaders(request, response, () => begin(request, response, () => app(request, response)));
  };
}

/** Gives the objects of a request the state of the framework. They have its methods (process/http-server.ts). */
function toExpress(app: Express, incoming: IncomingMessage, outgoing: ServerResponse) {
  const request = incoming as Request;
  const response = outgoing as Response;
  request.app = response.app = app;
  response.req = request;
  request.originalUrl = request.url;
  request.res = response;
  response.locals = Object.create(null);
  allowNotModified(request);
  return { request, response };
}

/**
 * The framework sends the whole answer if the request has `Cache-Control: no-cache`, and `fetch` adds it to each `If-None-Match`. This
 * header asks caches to revalidate; the condition remains valid (RFC 9110, section 13.2.2).
 */
function allowNotModified({ method, headers }: Request): void {
  if (method !== 'GET' && method !== 'HEAD') return;
  if (headers['if-none-match'] !== undefined) delete headers['cache-control'];
}

const BASE_PATH = '/v1';

/** Answers requests of operations at their usual address. The next handler answers any other request. */
function answerOperations(operations: RequestHandler): RequestHandler {
  return (request, response, next) => {
    const { url } = request;
    if (!url.startsWith(`${BASE_PATH}/`)) return next();
    request.baseUrl = BASE_PATH;
    request.url = url.slice(BASE_PATH.length);
    return operations(request, response, (error?: unknown) => {
      request.baseUrl = '';
      request.url = url;
      if (error === undefined) return next();
      // The framework would close the connection, too, if an answer fails after it has begun.
      sendError(error, request, response, () => request.socket.destroy());
    });
  };
}

type MountedPages = {
  readonly services: Services;
  readonly routes: readonly Route[];
  readonly metrics: HttpMetrics;
  readonly operations: RequestHandler;
};

function mountPages(app: Express, { services, routes, metrics, operations }: MountedPages): void {
  // Clients may write the base path in another case, or send the whole URL as a proxy does.
  app.use(BASE_PATH, operations);
  // The published client calls four of its operations at /v1/v1.
  app.use('/v1/v1', operations);
  const { METRICS, DOCS } = services.config;
  app.use('/metrics', shownWhere(METRICS));
  app.use(['/docs', '/v1/openapi.json'], shownWhere(DOCS));
  app.use(['/metrics', '/docs', '/v1/openapi.json'], compressAnswers);
  app.use(healthRoutes(services), metrics.router);
  app.use('/docs', docsRoutes(routes));
  app.use(serveConsole(services));
  app.get('/', shownWhere(DOCS), (_request, response) => response.redirect('/docs/'));
  app.all('/', shownWhere(DOCS), getOnly);

  let document: string | undefined;
  app.get('/v1/openapi.json', (_request, response) => {
    document ??= JSON.stringify(openApiDocument(routes));
    response.type('json').send(document);
  });
  app.all('/v1/openapi.json', getOnly);
  // Payment providers also send webhooks to addresses without /v1, which were registered at them earlier.
  app.use(mountRoutes(routes.filter(isProviderWebhook), services));
  app.use(refuseUnknownPath);
  app.use(sendError);
}

const isProviderWebhook = ({ access, path }: Route) => access === 'public' && path.startsWith('/webhooks/');

/** Restricts a path by the setting. If it is hidden, the answer is that of a path that does not exist. */
const shownWhere =
  (where: Config['METRICS']): RequestHandler =>
  (request, response, next) =>
    canShowMetrics(where, request) ? next() : refuseUnknownPath(request, response, next);

/** An answer of an operation belongs to the caller's key, and changes with time. */
const NO_CACHING = ['Cache-Control', 'no-store'] as const;

/** Sets the header on the answers of a handler. A path that the handler does not answer is left to the next one. */
const withoutCaching =
  (handler: RequestHandler): RequestHandler =>
  (request, response, next) => {
    response.setHeader(...NO_CACHING);
    return handler(request, response, (error?: unknown) => {
      if (error === undefined) response.removeHeader(NO_CACHING[0]);
      next(error);
    });
  };

const HARDENING = helmet({
  contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
  frameguard: { action: 'deny' },
  referrerPolicy: { policy: 'no-referrer' },
  // Pages of any origin may call the API with their own key. Answers to a session cookie have a stricter policy (http/mount.ts).
  crossOriginResourcePolicy: { policy: 'cross-origin' },
});

const CORS = cors({
  origin: '*',
  methods: ['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS'],
  exposedHeaders: [
    'Allow',
    'ETag',
    'X-Request-ID',
    'X-As-Of',
    'X-Ignored-Keys',
    'Idempotency-Replayed',
    'Retry-After',
    'RateLimit',
    'RateLimit-Policy',
    'WWW-Authenticate',
  ],
  maxAge: 600,
});

const COMMON_HEADERS = collectHeaders([HARDENING, CORS]);

/** Sets the headers of every answer, and answers preflight requests. */
const setCommonHeaders: RequestHandler = (request, response, next) => {
  for (const [name, value] of COMMON_HEADERS) response.setHeader(name, value);
  if (request.method === 'OPTIONS') CORS(request, response, next);
  else next();
};
