/**
 * Health checks: whether the process lives (`/health`), can accept events (`/ready`), and can answer usage queries (`/ready?for=queries`).
 * All are public and outside /v1.
 */
import { Router } from 'express';
import { invalid } from '../../core/foundation/error.ts';
import { checkReadiness, NEEDED_FOR } from '../../process/readiness.ts';
import { ALIVE } from '../../process/version.ts';
import { getOnly, refuseMethod } from './errors.ts';
import { refuseParameters } from './ignored-keys.ts';
import type { Services } from './services.ts';

export function healthRoutes(services: Services): Router {
  const router = Router();
  router.all('/health', (request, response) => {
    if (!['GET', 'HEAD', 'POST'].includes(request.method)) refuseMethod(request, response, ['GET', 'POST']);
    refuseParameters(request.query);
    response.json(ALIVE);
  });
  router.get('/ready', async ({ query }, response) => {
    refuseParameters(query, ['for']);
    const work = query.for ?? 'accepting';
    if (work !== 'accepting' && work !== 'queries') throw invalid('for', 'must be accepting or queries');
    const { is_ready, answer } = await checkReadiness(services, NEEDED_FOR[work]);
    if (!is_ready) response.set('Retry-After', '1');
    response.status(is_ready ? 200 : 503).json(answer);
  });
  router.all('/ready', getOnly);
  return router;
}
