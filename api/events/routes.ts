/** Routes of events: ingestion, queries, corrections, usage and exports. */
import type { Route } from '../http/route.ts';
import { analyticsRoutes } from './analytics.ts';
import { correctionRoutes } from './corrections.ts';
import { deadLetterRoutes } from './dead-letters.ts';
import { debuggerRoutes } from './debugger.ts';
import { exportRoutes } from './export.ts';
import { ingestRoutes } from './ingest.ts';
import { monitoringRoutes } from './monitoring.ts';
import { otlpRoutes } from './otlp.ts';
import { queryRoutes } from './query.ts';
import { usageRoutes } from './usage.ts';

export const eventRoutes: Route[] = [
  ...ingestRoutes,
  ...otlpRoutes,
  ...queryRoutes,
  ...debuggerRoutes,
  ...correctionRoutes,
  ...deadLetterRoutes,
  ...monitoringRoutes,
  ...usageRoutes,
  ...analyticsRoutes,
  ...exportRoutes,
];
