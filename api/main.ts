/** `npm run api`: the HTTP interface as a separate process, in any number of instances. */

import { findBuiltConsole } from '../process/console-source.ts';
import { runProcess } from '../process/process.ts';
import { bootstrap } from '../storage/models/operations/bootstrap.ts';
import { UsageCache } from '../storage/usage/usage-cache.ts';
import { startUsageFeed } from '../storage/usage/usage-feed.ts';
import { buildListener } from './app.ts';
import { listenForAccessChanges } from './http/access-changes.ts';
import { startCacheAudit } from './operations/audit-cache.ts';

runProcess('api', async (given) => {
  const services = { ...given, usage_cache: new UsageCache({ isFed: true }), console: findBuiltConsole() };
  startUsageFeed(services.postgres, services.usage_cache);
  const { postgres, config, clock } = services;
  const { api_key } = await bootstrap(postgres, { api_key: config.BOOTSTRAP_API_KEY, now: clock() });
  // The key is shown once, at the first start, and only if it was generated: the operator knows a configured key.
  if (api_key !== null && config.BOOTSTRAP_API_KEY === undefined) console.log(`farthing api: first API key ${api_key}`);
  const changes = listenForAccessChanges(services);
  const audit = startCacheAudit(services);
  const stop = async () => {
    await audit.close();
    await changes.close();
  };
  return { listener: buildListener(services), stop };
});
