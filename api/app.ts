/** The HTTP interface of a process: the framework's wiring, in the order in which a request meets it. */
import cors from 'cors';
import express, { type Express } from 'express';
import helmet from 'helmet';
import { docsRoutes } from './docs.ts';
import { refuseUnknownPath, sendError } from './errors.ts';
import { healthRoutes } from './health.ts';
import { httpMetrics } from './metrics.ts';
import { mountRoutes } from './mount.ts';
import { openApiDocument } from './openapi.ts';
import { parseQuery } from './query-string.ts';
import { logRequests } from './request-log.ts';
import { routes as allRoutes } from './resources.ts';
import type { Route } from './route.ts';
import type { Services } from './services.ts';

export function buildApp(services: Services, routes: readonly Route[] = allRoutes): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', parseQuery);
  const metrics = httpMetrics();
  app.use(logRequests(services.logger), metrics.measure, HARDENING, CORS);
  app.use(healthRoutes(services), metrics.router);
  app.use('/docs', docsRoutes());

  let document: unknown;
  app.get('/v1/openapi.json', (_request, response) => {
    document ??= openApiDocument(routes);
    response.json(document);
  });
  const router = mountRoutes(routes, services);
  // The published client asks four of its operations at /v1/v1.
  app.use('/v1/v1', router);
  app.use('/v1', router);
  app.use(refuseUnknownPath);
  app.use(sendError);
  return app;
}

const HARDENING = helmet({
  contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
  frameguard: { action: 'deny' },
  referrerPolicy: { policy: 'no-referrer' },
  // Any page may ask, with a key of its own: there are no cookies to misuse.
  crossOriginResourcePolicy: { policy: 'cross-origin' },
});

const CORS = cors({
  origin: '*',
  methods: ['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS'],
  exposedHeaders: ['X-Request-ID', 'X-As-Of', 'Idempotency-Replayed', 'Retry-After'],
  maxAge: 600,
});
