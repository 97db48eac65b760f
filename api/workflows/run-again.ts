/** What is answered to a request that comes again and has asked for long work: the run that it has begun (http/once.ts). */
import { WorkflowRunModel } from '../../storage/models/workflow-run.ts';
import type { Effects } from '../http/effects.ts';
import type { Context } from '../http/route.ts';

export function runAgain<Input>(messageOf: (input: Input) => string) {
  return {
    again: async (done: Effects, input: Input, context: Context) => ({
      message: messageOf(input),
      ...(await runOf(done, context)),
    }),
  };
}

export async function runOf(done: Effects, { scope, services }: Context) {
  const { id, run_id } = await WorkflowRunModel.fetch(scope, done.made('workflow'), { database: services.postgres });
  return { workflow_id: id, run_id };
}
