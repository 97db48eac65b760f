/** Environments are records of the tenant, so these requests need no environment. */

import { addEnvironment } from '../../../actions/operations/environments/add-environment.ts';
import { enqueueClone } from '../../../actions/operations/environments/clone-environment.ts';
import { invalid } from '../../../core/foundation/error.ts';
import { runInEnvironment } from '../../../storage/foundation/request-context.ts';
import { EnvironmentModel } from '../../../storage/models/foundation/environment.ts';
import { WorkflowRunModel } from '../../../storage/models/foundation/workflow-run.ts';
import { fetchPage } from '../../http/list.ts';
import { idParams, type Route, route, toAuthor } from '../../http/route.ts';
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
      'Creates an environment. Its records are invisible to other environments. Create a key for it with its id (`POST /secrets/api/keys`). The setting tenant_config limits the number of environments per type.',
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
    description: 'Returns the environments of the tenant. Default order: newest first.',
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
    description: 'Returns the environment with this id. An environment of another tenant is not found.',
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
    description: 'Changes the name. The type cannot be changed.',
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
    summary: 'Copy the catalogue of an environment',
    description:
      'Copies published features with their meters, then published plans and add-ons with the records that belong to them, coupons, tax rates, cost sheets and import mappings into another environment. The copy runs in the background: `GET /workflows/{workflow_id}/{run_id}/summary` lists the records that were copied, and those that were not with the reasons. Records that an earlier run has copied are not copied again. Refused for callers without the role super_admin.',
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
