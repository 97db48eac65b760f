/** Environments of the tenant. They lie above the environments, so no environment is needed to reach them. */

import { addEnvironment } from '../../actions/environments/add-environment.ts';
import { enqueueClone } from '../../actions/environments/clone-environment.ts';
import { invalid } from '../../core/error.ts';
import { EnvironmentModel } from '../../storage/models/environment.ts';
import { WorkflowRunModel } from '../../storage/models/workflow-run.ts';
import { runInEnvironment } from '../../storage/request-context.ts';
import { fetchPage } from '../http/list.ts';
import { idParams, type Route, route, toAuthor } from '../http/route.ts';
import {
  CloneAnswer,
  CloneEnvironment,
  CreateEnvironment,
  EnvironmentAnswer,
  EnvironmentFilter,
  EnvironmentListAnswer,
  environmentGrammar,
  UpdateEnvironment,
} from './schema.ts';

const tag = 'Environments';

export const environmentRoutes: Route[] = [
  route({
    method: 'post',
    path: '/environments',
    operation_id: 'createEnvironment',
    summary: 'Create an environment',
    description:
      'Its records are its own: nothing of one environment is seen from another. A key for it is made with its id (`POST /secrets/api/keys`). How many of a type there may be says the setting tenant_config.',
    tag,
    access: 'environment:write',
    body: CreateEnvironment,
    success: 201,
    answer: EnvironmentAnswer,
    example: { body: { name: 'Staging', type: 'development' } },
    idempotency: {
      replay: (done, _input, { principal, services }) =>
        EnvironmentModel.fetch(principal.tenant_id, done.made('environment'), { database: services.postgres }),
    },
    handle: ({ body }, context) => {
      const { principal, services } = context;
      return services.postgres.transaction((transaction) =>
        addEnvironment(transaction, principal.tenant_id, { ...body, author: toAuthor(context) }),
      );
    },
  }),
  route({
    method: 'get',
    path: '/environments',
    operation_id: 'listEnvironments',
    summary: 'List environments',
    description: 'Those of the tenant, newest first unless `sort` says otherwise.',
    tag,
    access: 'environment:read',
    query: EnvironmentFilter,
    success: 200,
    answer: EnvironmentListAnswer,
    handle: async ({ query }, { principal, services }) => {
      const all = EnvironmentModel.ofTenant(principal.tenant_id, services.postgres);
      const { items, pagination } = await fetchPage(all, query, environmentGrammar);
      return { environments: items, ...pagination };
    },
  }),
  route({
    method: 'get',
    path: '/environments/:id',
    operation_id: 'getEnvironment',
    summary: 'Get an environment',
    description: 'By its id; one of another tenant does not exist here.',
    tag,
    access: 'environment:read',
    params: idParams,
    success: 200,
    answer: EnvironmentAnswer,
    handle: ({ params }, { principal, services }) =>
      EnvironmentModel.fetch(principal.tenant_id, params.id, { database: services.postgres }),
  }),
  route({
    method: 'put',
    path: '/environments/:id',
    operation_id: 'updateEnvironment',
    summary: 'Rename an environment',
    description: 'Its type cannot be changed.',
    tag,
    access: 'environment:write',
    params: idParams,
    body: UpdateEnvironment,
    success: 200,
    answer: EnvironmentAnswer,
    handle: ({ params, body }, context) =>
      context.services.postgres.transaction(async (database) => {
        const { tenant_id } = context.principal;
        const known = await EnvironmentModel.fetch(tenant_id, params.id, { database, lock: true });
        if (body.type && body.type.toLowerCase() !== known.type) throw invalid('type', 'cannot be changed');
        return EnvironmentModel.change(known, { name: body.name ?? known.name }, { by: toAuthor(context), database });
      }),
  }),
  route({
    method: 'post',
    path: '/environments/:id/clone',
    operation_id: 'cloneEnvironment',
    summary: 'Copy the catalogue of an environment into another',
    description:
      'For a super_admin only. Published features with their meters, then published plans with what hangs on them, in the background: `GET /workflows/{workflow_id}/{run_id}/summary` tells what was copied and what was not, and why. What an earlier run has copied is not copied again.',
    tag,
    access: 'environment:write',
    params: idParams,
    body: CloneEnvironment,
    success: 202,
    answer: CloneAnswer,
    idempotency: {
      replay: async (done, { params }, { scope, services }) => {
        const environment_id = scope.environment_id || params.id;
        const run = await runInEnvironment(environment_id, () =>
          WorkflowRunModel.fetch({ ...scope, environment_id }, done.made('workflow'), { database: services.postgres }),
        );
        const { target_environment_id } = run.result as { target_environment_id: string };
        return showCopying(params.id, run, target_environment_id);
      },
    },
    handle: async ({ params, body }, context) => {
      const { services, scope, principal } = context;
      const input = { source_environment_id: params.id, target: body, principal, author: toAuthor(context) };
      const { run, target_environment_id } = await enqueueClone(services, scope.environment_id, input);
      return showCopying(params.id, run, target_environment_id);
    },
  }),
];

function showCopying(source: string, { id, run_id }: WorkflowRunModel, target_environment_id: string) {
  const message = `environment ${source} is being copied into ${target_environment_id}`;
  return { message, workflow_id: id, run_id, target_environment_id };
}
