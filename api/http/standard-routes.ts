/**
 * Builds the operations that most resources have: create, list and search, read, change, archive. The noun determines paths, names and
 * permissions, and one function shows the records. Each operation adds its input and its handler. An operation that differs is a separate
 * `route`.
 */
import { z } from 'zod';
import type { PermissionEntity } from '../../core/foundation/access/role.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import type { Database } from '../../storage/foundation/stores.ts';
import { toEntityType } from '../../storage/models/foundation/statements.ts';
import type { Effects } from './effects.ts';
import {
  type Context,
  type DecodedInput,
  type IdempotencyStrategy,
  idParams,
  MessageAnswer,
  type Route,
  type RouteDefinition,
  route,
} from './route.ts';

type ResourceShape = z.ZodType;
type ResourceId = z.output<typeof idParams>;

/** Texts of an operation that cannot be derived from its noun. */
type OperationText = Pick<RouteDefinition<undefined, undefined, undefined>, 'summary' | 'description' | 'example'>;
type OperationDefinition<Input, Result> = OperationText & {
  idempotency?: IdempotencyStrategy<never>;
  handle(input: Input, context: Context): Promise<Result>;
};

/** `/addons/lookup/:lookup_key`, `getAddonByLookupKey`. */
type LookupKeyOperation<Row> = {
  under: string;
  key: string;
  operation: string;
  /** Description of the path parameter. */
  about: string;
  fetch(scope: Scope, key: string, database: Database): Promise<Row>;
};

type Resource<Row, Filter extends ResourceShape> = {
  /**
   * Noun of the resource. With `plan` the path is /plans, the operations are createPlan, listPlans …, the permissions
   * plan:read and plan:write.
   */
  noun: PermissionEntity;
  /**
   * Overrides the noun if the resource and its permissions have different names: `/prices/units`, `PriceUnit` of createPriceUnit, `price
   * unit`.
   */
  called?: { path: string; name: string; words: string };
  tag: string;
  answer: ResourceShape;
  model: { recordName: string; fetch(scope: Scope, id: string, options: { database: Database }): Promise<Row> };
  show(record: Row, context: Context): unknown;
  /** One filter for both the query string and the body. */
  list: {
    filter: Filter;
    answer: ResourceShape;
    find(filter: DecodedInput<Filter>, context: Context): Promise<unknown>;
  };
};

const PUBLISHED =
  'Returns the records that meet all conditions, one page at a time. Default: published records, newest first; ' +
  '`status` and `sort` change that.';

export function standardRoutes<Row, Filter extends ResourceShape>(resource: Resource<Row, Filter>) {
  const { noun, tag, answer, model, list } = resource;
  const byNoun = { path: `/${noun}s`, name: noun[0]!.toUpperCase() + noun.slice(1), words: noun };
  const { path, name, words } = resource.called ?? byNoun;
  const one = `${path}/:id`;
  const reads = { tag, access: `${noun}:read`, success: 200 } as const;
  const writes = { tag, access: `${noun}:write`, success: 200 } as const;
  const shown =
    <Input>(handle: OperationDefinition<Input, Row>['handle']) =>
    async (input: Input, context: Context) =>
      resource.show(await handle(input, context), context);

  /** A repeated request is answered with the record that the first one created. */
  const once = {
    replay: async (done: Effects, _input: unknown, context: Context) => {
      const id = done.made(toEntityType(model));
      return resource.show(await model.fetch(context.scope, id, { database: context.services.postgres }), context);
    },
  };

  return {
    once,

    create: <Body extends ResourceShape>(
      definition: OperationDefinition<{ body: DecodedInput<Body> }, Row> & { body: Body },
    ): Route =>
      route({
        ...writes,
        method: 'post',
        path,
        operation_id: `create${name}`,
        success: 201,
        answer,
        idempotency: once,
        ...definition,
        handle: shown(definition.handle),
      }),

    list: route({
      ...reads,
      method: 'get',
      path,
      operation_id: `list${name}s`,
      summary: `List ${words}s`,
      description: `${PUBLISHED} The conditions are in the query string.`,
      query: list.filter,
      answer: list.answer,
      handle: ({ query }, context) => list.find(query, context),
    }),

    search: route({
      ...reads,
      method: 'post',
      path: `${path}/search`,
      operation_id: `query${name}`,
      summary: `Search ${words}s`,
      description: `${PUBLISHED} The conditions are in the body.`,
      body: list.filter,
      answer: list.answer,
      handle: ({ body }, context) => list.find(body, context),
    }),

    read: (texts: OperationText): Route =>
      route({
        ...reads,
        method: 'get',
        path: one,
        operation_id: `get${name}`,
        params: idParams,
        answer,
        ...texts,
        handle: shown(({ params }, { scope, services }) =>
          model.fetch(scope, params.id, { database: services.postgres }),
        ),
      }),

    /** Reads the published record with this lookup key, which is the last segment of the path. */
    readBy: (definition: OperationText & LookupKeyOperation<Row>): Route =>
      route({
        ...reads,
        method: 'get',
        path: `${path}/${definition.under}/:${definition.key}`,
        operation_id: `get${name}By${definition.operation}`,
        summary: definition.summary,
        description: definition.description,
        params: z.object({ [definition.key]: z.string().min(1).meta({ description: definition.about }) }),
        answer,
        handle: shown(({ params }, { scope, services }) =>
          definition.fetch(scope, params[definition.key]!, services.postgres),
        ),
      }),

    change: <Body extends ResourceShape>(
      definition: OperationDefinition<{ params: ResourceId; body: DecodedInput<Body> }, Row> & { body: Body },
    ): Route =>
      route({
        ...writes,
        method: 'put',
        path: one,
        operation_id: `update${name}`,
        params: idParams,
        answer,
        ...definition,
        handle: shown(definition.handle),
      }),

    archive: (definition: OperationDefinition<{ params: ResourceId }, void>): Route =>
      route({
        ...writes,
        method: 'delete',
        path: one,
        operation_id: `delete${name}`,
        params: idParams,
        answer: MessageAnswer,
        ...definition,
        handle: async (input, context) => {
          await definition.handle(input, context);
          return { message: `${words} archived` };
        },
      }),
  };
}
