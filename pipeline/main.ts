/** `npm run pipeline`: one worker of the pipeline as a process of its own; several workers share the partitions of the log. */
import { runProcess } from '../process/process.ts';
import { identityOptions, startPipeline } from './pipeline.ts';

runProcess('pipeline', async (services) => {
  const { owner, logger, clock, config } = services;
  return startPipeline(services, {
    owner,
    logger,
    clock,
    slice_events_max: config.SLICE_EVENTS_MAX,
    identities: identityOptions(config),
  });
});
