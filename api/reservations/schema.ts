import { z } from 'zod';
import { GRANT_MEASURES } from '../../core/catalog/entitlement/grant-record.ts';
import { RESERVATION_STATUSES, reservationShape } from '../../core/credits/reservations/record.ts';
import { checkShape, commitShape } from '../../core/credits/reservations/request.ts';
import { REASONS } from '../../core/credits/reservations/room.ts';
import { anyCase, decimalText, timestampText } from '../../core/foundation/record.ts';
import { BASE_COLUMNS, type ListGrammar, listAnswer, listShape, matchAny } from '../http/list.ts';

export const CheckRequest = checkShape.meta({
  id: 'CheckEntitlementRequest',
  example: {
    external_customer_id: 'acme',
    feature_lookup_key: 'api-calls',
    quantity: '40',
    hold: { ttl_seconds: 60, on_expiry: 'release' },
    idempotency_key: 'chat-17',
  },
});
export const CommitRequest = commitShape.meta({ id: 'CommitReservationRequest', example: { quantity: '31' } });

export const ReservationAnswer = reservationShape.meta({ id: 'ReservationResponse' });

const CheckedLimit = z
  .object({
    limit: decimalText.nullable().meta({
      description: 'Units in the window, or money if `grant_measure` is amount; null if unlimited.',
    }),
    is_soft_limit: z.boolean().meta({ description: 'True if usage may continue beyond the limit.' }),
    usage_reset_period: z
      .string()
      .nullable()
      .meta({ description: 'Period over which usage counts against the limit; null for usage-ordered grants.' }),
    grant_measure: z.enum(GRANT_MEASURES).nullable().meta({
      description: 'Measure of a usage-ordered grant: units or money. Null for any other limit.',
    }),
    window_start: timestampText.meta({ description: 'Start of the window in which usage accumulates.' }),
    window_end: timestampText.nullable().meta({ description: 'Instant at which usage resets to 0; null if never.' }),
    used: decimalText.meta({ description: 'Usage in the window, including the latest commits.' }),
    held: decimalText.meta({ description: 'Held amount, including this reservation.' }),
    remaining: decimalText.nullable().meta({ description: 'Remaining amount of the limit; null if unlimited.' }),
  })
  .meta({ id: 'CheckedLimit' });

export const CheckAnswer = z
  .object({
    allowed: z.boolean().meta({ description: 'True if the usage is allowed.' }),
    reason: z.enum(REASONS).meta({ description: 'Reason of the decision.' }),
    customer_id: z.string().meta({ description: 'Id of the customer.' }),
    feature_id: z.string().nullable().meta({ description: 'Checked feature; null for credits.' }),
    wallet_id: z.string().nullable().meta({ description: 'Checked wallet; null for a feature.' }),
    quantity: decimalText.meta({ description: 'Number of units or credits in the request.' }),
    limit: decimalText.nullable().meta({
      description:
        'The limit of which the smallest amount is left, if several apply. Null for credits, and if usage is not limited.',
    }),
    is_soft_limit: z.boolean().meta({ description: 'True if usage may continue beyond `limit`.' }),
    used: decimalText.nullable().meta({ description: 'Usage that counts against `limit`.' }),
    held: decimalText.meta({ description: 'Held amount of the feature or the wallet, including this reservation.' }),
    remaining: decimalText.nullable().meta({
      description:
        'Amount that is left. Credits that expire before the hold ends do not count. Null if usage is not limited, or if the amount is unknown.',
    }),
    limits: z.array(CheckedLimit).meta({ description: 'All limits that apply.' }),
    as_of: timestampText
      .nullable()
      .meta({ description: 'Every event accepted before this instant is counted; null if nothing was counted.' }),
    reservation: ReservationAnswer.nullable().meta({ description: 'The new reservation; null without a hold.' }),
  })
  .meta({ id: 'CheckEntitlementResponse' });

export const ReservationFilter = listShape({
  reservation_ids: matchAny('reservations'),
  customer_id: z.string().optional().meta({ description: 'Id of the customer.' }),
  feature_ids: matchAny('features'),
  wallet_ids: matchAny('wallets'),
  reservation_status: anyCase(RESERVATION_STATUSES).optional().meta({ description: 'Status of the reservation.' }),
}).meta({ id: 'ReservationFilter', example: { reservation_status: 'released', limit: 10 } });
export type ReservationFilter = z.output<typeof ReservationFilter>;
export const ReservationListAnswer = listAnswer(ReservationAnswer, 'ListReservationsResponse');

export const reservationGrammar: ListGrammar = {
  columns: {
    ...BASE_COLUMNS,
    customer_id: 'string',
    feature_id: 'string',
    wallet_id: 'string',
    quantity: 'number',
    committed_quantity: 'number',
    reservation_status: 'string',
    on_expiry: 'string',
    expires_at: 'date',
    ended_at: 'date',
    ended_by: 'string',
  },
  metadata: true,
};
