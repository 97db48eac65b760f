/** Whether the process lives (`/health`) and whether it can do its work (`/ready`). Both are public and outside /v1. */
import { Router } from 'express';
import { pingPostgres } from '../storage/postgres.ts';
import type { Services } from './services.ts';

const PATIENCE_MS = 2_000;

export function healthRoutes(services: Services): Router {
  const router = Router();
  router.all('/health', (request, response, next) => {
    if (!['GET', 'HEAD', 'POST'].includes(request.method)) return next();
    response.json({ status: 'ok' });
  });
  router.get('/ready', async (_request, response) => {
    const parts = await pingAll(services);
    const isReady = Object.values(parts).every((state) => state === 'ok');
    if (!isReady) response.set('Retry-After', '1');
    response.status(isReady ? 200 : 503).json({ status: isReady ? 'ok' : 'unavailable', parts });
  });
  return router;
}

async function pingAll({ postgres, clickhouse, log }: Services) {
  const [first, second, third] = await Promise.all([
    stateOf(() => pingPostgres(postgres)),
    stateOf(async () => {
      const answer = await clickhouse.ping();
      if (!answer.success) throw answer.error;
    }),
    stateOf(() => log.ping()),
  ]);
  return { postgres: first, clickhouse: second, log: third };
}

async function stateOf(ping: () => Promise<unknown>): Promise<'ok' | 'away'> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'away'>((resolve) => {
    timer = setTimeout(resolve, PATIENCE_MS, 'away');
  });
  try {
    return await Promise.race([ping().then(() => 'ok' as const), late]);
  } catch {
    return 'away';
  } finally {
    clearTimeout(timer);
  }
}
