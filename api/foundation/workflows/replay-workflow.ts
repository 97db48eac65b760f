/** Answers a repeated request for background work with the run that the first request started (http/idempotency-strategy.ts). */
import { WorkflowRunModel } from '../../../storage/models/foundation/workflow-run.ts';
import type { Effects } from '../../http/effects.ts';
import type { Context } from '../../http/route.ts';

export function replayWorkflow<Input>(buildMessage: (input: Input) => string) {
  return {
    replay: async (done: Effects, input: Input, context: Context) => ({
      message: buildMessage(input),
      ...(await loadStartedRun(done, context)),
    }),
  };
}

export async function loadStartedRun(done: Effects, { scope, services }: Context) {
  const { id, run_id } = await WorkflowRunModel.fetch(scope, done.made('workflow'), { database: services.postgres });
  return { workflow_id: id, run_id };
}
