/** Whether the process lives (`/health`) and whether it can do its work (`/ready`). Both are public and outside /v1. */
import { Router } from 'express';
import { readinessOf } from '../storage/readiness.ts';
import type { Services } from './services.ts';

export function healthRoutes(services: Services): Router {
  const router = Router();
  router.all('/health', (request, response, next) => {
    if (!['GET', 'HEAD', 'POST'].includes(request.method)) return next();
    response.json({ status: 'ok' });
  });
  router.get('/ready', async (_request, response) => {
    const { is_ready, parts } = await readinessOf(services);
    if (!is_ready) response.set('Retry-After', '1');
    response.status(is_ready ? 200 : 503).json({ status: is_ready ? 'ok' : 'unavailable', parts });
  });
  return router;
}
