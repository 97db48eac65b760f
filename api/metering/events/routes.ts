/** Routes of events: ingestion, queries, corrections, usage and exports. */
import type { Route } from '../../http/route.ts';
import { debuggerRoutes } from '../../reporting/events/debugger.ts';
import { analyticsRoutes } from '../../reporting/usage/analytics.ts';
import { exportRoutes } from '../../reporting/usage/export.ts';
import { usageRoutes } from '../usage/routes.ts';
import { correctionRoutes } from './corrections.ts';
import { deadLetterRoutes } from './dead-letters.ts';
import { ingestRoutes } from './ingest.ts';
import { monitoringRoutes } from './monitoring.ts';
import { otlpRoutes } from './otlp.ts';
import { queryRoutes } from './query.ts';

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
