/**
 * Prometheus metrics of this process at `/metrics`. Requests are counted by route template, method and status, never by tenant or path:
 * label values must not grow with the customers. Other modules add metrics to prom-client's default registry.
 */
import { type Request, type Response, Router } from 'express';
import { collectDefaultMetrics, Histogram, Registry, register } from 'prom-client';
import { getOnly } from './errors.ts';
import { refuseParameters } from './ignored-keys.ts';
import { isQuiet } from './request-log.ts';

export type HttpMetrics = {
  measure(request: Request, response: Response): void;
  measured(answer: MeasuredAnswer): void;
  readonly router: Router;
};

type MeasuredAnswer = {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly seconds: number;
};

export function httpMetrics(): HttpMetrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const duration = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Duration of HTTP requests by route, method and status.',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.0005, 0.001, 0.0015, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  });
  const router = Router();
  router.get('/metrics', async ({ query }, response) => {
    refuseParameters(query);
    const both = Registry.merge([registry, register]);
    response.type(both.contentType).send(await both.metrics());
  });
  router.all('/metrics', getOnly);
  // Caches the metric of each label set, because finding it by its labels costs more than counting.
  const labelled = new Map<string, { observe(seconds: number): void }>();
  const measured: HttpMetrics['measured'] = ({ method, route, status, seconds }) => {
    const key = `${method} ${status} ${route}`;
    let own = labelled.get(key);
    if (own === undefined) labelled.set(key, (own = duration.labels({ method, route, status })));
    own.observe(seconds);
  };
  return { measure: measureInto(measured), measured, router };
}

function measureInto(measured: HttpMetrics['measured']): HttpMetrics['measure'] {
  return (request, response) => {
    const began_ms = request.arrived_ms ?? performance.now();
    response.on('finish', () => {
      const route = String(response.locals.route ?? (isQuiet(request.originalUrl) ? 'probe' : 'unmatched'));
      const seconds = (performance.now() - began_ms) / 1000;
      measured({ method: methodLabel(request.method), route, status: response.statusCode, seconds });
    });
  };
}

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS']);
const methodLabel = (method: string) => (METHODS.has(method) ? method : 'OTHER');
