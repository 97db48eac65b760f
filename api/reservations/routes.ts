/** Whether a customer may use something now, and what is held for it meanwhile (docs/rules/reservations.md). */
import { checkReservation } from '../../actions/reservations/check.ts';
import { commitReservation, releaseReservation } from '../../actions/reservations/end-reservation.ts';
import { narrow } from '../../storage/models/page.ts';
import { ReservationModel } from '../../storage/models/reservation.ts';
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
    summary: 'Ask whether a customer may use something now, and hold it',
    description:
      'So many units of a feature, or so many credits. Exact, however many ask at a time: what is held and what was committed counts at once. Never past a hard limit; past a soft one `reason` says so. What the customer does not have is not allowed. With `hold` it is set apart until it is committed, released, or expires.',
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
  reservations.read({ summary: 'Get a reservation', description: 'Whatever has become of it.' }),
  route({
    ...verb,
    params: idParams,
    path: '/reservations/:id/commit',
    operation_id: 'commitReservation',
    summary: 'Say how much of a reservation was used',
    description:
      'All of it unless `quantity` says less, or more, for which there must be room. Of a feature it becomes an event under the id of the reservation, of credits a debit: once, however often it is sent. Answered when that is durable.',
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
    summary: 'Give back what a reservation holds',
    description: 'Nothing of it was used. One that has expired holds nothing, and is answered as it is.',
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
