/**
 * One `route` describes one operation: where it is, who may call it, what it takes, what it answers, what it does. From
 * the same zod shapes it decodes requests, encodes answers and writes the OpenAPI document. Routes hold no try/catch:
 * what they throw becomes the error record (errors.ts).
 */
import type { Request, Response } from 'express';
import type { Logger } from 'pino';
import { z } from 'zod';
import type { Permission } from '../../core/access/role.ts';
import type { Scope } from '../../core/scope.ts';
import type { Author } from '../../core/stamp.ts';
import type { CacheView } from '../../storage/cache/cached-answers.ts';
import type { EnvironmentClock } from '../../storage/environment-clock.ts';
import type { Database } from '../../storage/stores.ts';
import type { Services } from '../services.ts';
import type { Effects } from './effects.ts';
import type { CachedAnswerRead } from './serialized-cache.ts';

export type HttpMethod = 'get' | 'post' | 'put' | 'delete';

/** The permission that the caller needs; `public` asks for no key. docs/permissions.md lists them all. */
export type Access = 'public' | Permission;

export type RequestPrincipal = {
  readonly user_id: string;
  readonly tenant_id: string;
  readonly roles: readonly string[];
  /** The API key it came with. */
  readonly secret_id: string | null;
};

export type Context = {
  readonly scope: Scope;
  readonly principal: RequestPrincipal;
  readonly services: Services;
  /** The request's instant, by the clock of its environment where it has one; nothing below asks a clock again. */
  readonly now: Date;
  /** The same by the machine's clock: for what is limited, leased or kept, whatever time it is in the environment. */
  readonly received_at: Date;
  /** Of the environment, where it goes by one of its own. */
  readonly clock: EnvironmentClock | null;
  readonly request_id: string;
  readonly log: Logger;
  /** For the few routes that stream or need raw bytes. */
  readonly request: Request;
  readonly response: Response;
};

type RouteShape = z.ZodType;
export type DecodedInput<S> = S extends RouteShape ? z.output<S> : undefined;

/**
 * `reads`: it writes nothing. `same`: done twice it has done the same as once. `inner_key`: what it does has a key of its own, which is
 * that of the body or follows from the header (innerKey). Else what it commits is noted in the same transaction, and `again` does what
 * is left and answers what the first answered, as it can be read now. `shown_once`: it is noted, and nobody can read the answer again.
 */
export type IdempotencyStrategy<Input> =
  | 'reads'
  | 'same'
  | 'inner_key'
  | 'shown_once'
  | { replay(done: Effects, input: Input, context: Context): Promise<unknown> };

export type RouteDefinition<
  P extends RouteShape | undefined,
  Q extends RouteShape | undefined,
  B extends RouteShape | undefined,
> = {
  method: HttpMethod;
  /** Relative to the base URL, Express style: `/meters/:id`. */
  path: string;
  operation_id: string;
  summary: string;
  /** What happens, in a sentence or two: what the summary leaves open, defaults, what is refused. */
  description?: string;
  tag: string;
  access: Access;
  params?: P;
  query?: Q;
  body?: B;
  /** What else it takes as a body than JSON of its shape, by the content type, with an example of it for the documentation. */
  also_takes?: Readonly<Record<string, { schema: RouteShape; example: unknown }>>;
  /** The route takes the bytes as they came (inflated): `context.request.body` is a Buffer of up to 32 MiB. */
  raw_body?: boolean;
  /** In bytes, inflated: where it takes less than others of its kind. */
  body_limit?: number;
  /** The body is a file of one of these content types, each with an example for the documentation; taken as it came (raw_body), its shape its own affair. */
  takes_file?: Readonly<Record<string, string | readonly object[]>>;
  /** Its `:id` may be any text, which a producer has chosen: also a word that is another path. */
  ids_are_texts?: boolean;
  /** Of a public route: each request carries a signature, and is answered 401 without. */
  signed?: boolean;
  /** The answer shows a secret: kept for a repeated request only sealed with the caller's own key. */
  shows_secret?: boolean;
  /** The one success status of the operation; `answered()` is for the few that have two. */
  success: 200 | 201 | 202 | 204;
  /** Every key that it declares is present in the answer, null when unset. Absent with 204 and for streamed answers. */
  answer?: RouteShape;
  /** The kind of a file that it answers, instead of JSON or in its place where that is asked for: `application/pdf`. */
  file_type?: string;
  /** A body for the documentation, where that of its shape does not fit; what is answered to it is in api/examples. */
  example?: { body: unknown };
  /** Of a POST that is not public: how it is done once. */
  idempotency?: IdempotencyStrategy<{ params: DecodedInput<P>; query: DecodedInput<Q>; body: DecodedInput<B> }>;
  /** What `handle` would answer, where all of it is kept in memory; undefined where something has to be gathered (kept-reads.ts). */
  readCached?(
    input: { params: DecodedInput<P>; query: DecodedInput<Q> },
    context: CachedReadContext,
  ): CachedAnswerRead | undefined;
  handle(
    input: { params: DecodedInput<P>; query: DecodedInput<Q>; body: DecodedInput<B> },
    context: Context,
  ): Promise<unknown>;
};

export type CachedReadContext = Pick<Context, 'now'> & { readonly cache: CacheView };

/** A route of whatever shapes, as the table of contents holds it. */
export type Route = RouteDefinition<RouteShape | undefined, RouteShape | undefined, RouteShape | undefined>;

export function route<
  P extends RouteShape | undefined = undefined,
  Q extends RouteShape | undefined = undefined,
  B extends RouteShape | undefined = undefined,
>(definition: RouteDefinition<P, Q, B>): Route {
  return definition;
}

/** A result with a status of its own: `return answered(202, {…})`. It is encoded with the route's shape like any other. */
export class AnswerWithStatus {
  readonly http_status: number;
  readonly value: unknown;
  constructor(http_status: number, value: unknown) {
    this.http_status = http_status;
    this.value = value;
  }
}
export const answerWithStatus = (http_status: number, value: unknown) => new AnswerWithStatus(http_status, value);

/** On whose behalf, and at which instant, the request acts. */
export function toAuthor({ principal, now }: Context): Author {
  return { user_id: principal.user_id, now };
}

/** How a single change on behalf of a request is written. */
export function toChangeOptions(context: Context): { by: Author; database: Database } {
  return { by: toAuthor(context), database: context.services.postgres };
}

/** `/things/:id` */
export const idParams = z.object({ id: z.string().min(1).meta({ description: 'The id of what is meant.' }) });

/** `{message}` of deletes and other verbs without a record to answer. */
export const MessageAnswer = z
  .object({ message: z.string().meta({ description: 'What was done.' }) })
  .meta({ id: 'SuccessResponse' });
