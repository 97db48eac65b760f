/** Routes of events: ingestion, queries, corrections and usage. */
import type { Route } from '../../http/route.ts';
import { usageRoutes } from '../usage/routes.ts';
import { correctionListRoutes } from './correction-list.ts';
import { correctionPreviewRoutes } from './correction-previews.ts';
import { correctionRoutes } from './corrections.ts';
import { deadLetterRoutes } from './dead-letters.ts';
import { ingestRoutes } from './ingest.ts';
import { monitoringRoutes } from './monitoring.ts';
import { otlpRoutes } from './otlp.ts';
import { queryRoutes } from './query.ts';
import { seenRoutes } from './seen.ts';
import { streamRoutes } from './stream.ts';
import { uncountedRoutes } from './uncounted.ts';

export const eventRoutes: Route[] = [
  ...ingestRoutes,
  ...otlpRoutes,
  ...queryRoutes,
  ...correctionRoutes,
  ...correctionListRoutes,
  ...correctionPreviewRoutes,
  ...deadLetterRoutes,
  ...uncountedRoutes,
  ...seenRoutes,
  ...streamRoutes,
  ...monitoringRoutes,
  ...usageRoutes,
];
