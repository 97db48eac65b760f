/** Events: taken in, listed, looked into, counted (api/01-events). */
import type { Route } from '../route.ts';
import { ingestRoutes } from './ingest.ts';
import { monitoringRoutes } from './monitoring.ts';
import { usageRoutes } from './usage.ts';

export const eventRoutes: Route[] = [...ingestRoutes, ...monitoringRoutes, ...usageRoutes];
