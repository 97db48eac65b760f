/**
 * Checks whether a customer may use a feature or credits now, and holds them until they are used or released (docs/rules/reservations.md).
 */
import { checkReservation } from '../../actions/reservations/check.ts';
import { commitReservation, releaseReservation } from '../../actions/reservations/end-reservation.ts';
import { narrow } from '../../storage/models/foundation/page.ts';
import { ReservationModel } from '../../storage/models/reservations/reservation.ts';
import { withInnerKey } from '../http/idempotency.ts';
import { fetchPage } from '../http/list.ts';
import { type Context, idParams, type Route, route, toAuthor } from '../http/route.ts';
import { standardRoutes } from '../http/standard-routes.ts';
import {
  CheckAnswer,
  CheckRequest,
  CommitRequest,
  ReservationAnswer,
  ReservationFilter,
  ReservationListAnswer,
  reservationGrammar,
} from './schema.ts';

const tag = 'Reservations';

const reservations = standardRoutes({
  noun: 'reservation',
  tag,
  answer: ReservationAnswer,
  model: ReservationModel,
  show: (reservation: ReservationModel) => reservation,
  list: { filter: ReservationFilter, answer: ReservationListAnswer, find: findReservations },
});
const verb = { method: 'post', tag, access: 'reservation:write', success: 200 } as const;

export const reservationRoutes: Route[] = [
  route({
    ...verb,
    path: '/entitlements/check',
    operation_id: 'checkEntitlement',
    summary: 'Check and hold an entitlement',
    description:
      'Checks whether the customer may use a number of units of a feature, or a number of credits. The answer is ' +
      'exact under concurrency: held and committed amounts count at once. A hard limit is never exceeded; beyond ' +
      'a soft limit `reason` reports it. A feature or wallet that the customer does not have is not allowed. With ' +
      '`hold` the amount is reserved until it is committed, released or expires.',
    body: CheckRequest,
    answer: CheckAnswer,
    idempotency: 'inner_key',
    handle: ({ body }, context) =>
      checkReservation(context.services, context.scope, {
        request: body.hold === null ? body : withInnerKey(body, context),
        author: toAuthor(context),
      }),
  }),
  reservations.list,
  reservations.search,
  reservations.read({ summary: 'Get a reservation', description: 'Returns the reservation in any status.' }),
  route({
    ...verb,
    params: idParams,
    path: '/reservations/:id/commit',
    operation_id: 'commitReservation',
    summary: 'Commit a reservation',
    description:
      'Records the used part of a reservation. Default: all of it. `quantity` may be less, or more if there is ' +
      'room. A feature reservation becomes an event with the id of the reservation, a credit reservation a debit. ' +
      'Repeated requests commit once. The answer is sent after the commit is durable.',
    body: CommitRequest,
    answer: ReservationAnswer,
    idempotency: 'same',
    handle: ({ params, body }, context) =>
      commitReservation(context.services, context.scope, { id: params.id, request: body, author: toAuthor(context) }),
  }),
  route({
    ...verb,
    params: idParams,
    path: '/reservations/:id/release',
    operation_id: 'releaseReservation',
    summary: 'Release a reservation',
    description: 'Releases the hold without usage. An expired reservation holds nothing, and is returned unchanged.',
    answer: ReservationAnswer,
    idempotency: 'same',
    handle: ({ params }, context) =>
      releaseReservation(context.services, context.scope, { id: params.id, author: toAuthor(context) }),
  }),
];

async function findReservations(input: ReservationFilter, { scope, services }: Context) {
  const query = narrow(ReservationModel.in(scope, services.postgres), [
    ['id', input.reservation_ids],
    ['customer_id', input.customer_id],
    ['feature_id', input.feature_ids],
    ['wallet_id', input.wallet_ids],
    ['reservation_status', input.reservation_status],
  ]);
  return fetchPage(query, input, reservationGrammar);
}
