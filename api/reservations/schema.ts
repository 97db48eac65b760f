/** Requests, answers and lists of checks and reservations. */
import { z } from 'zod';
import { GRANT_MEASURES } from '../../core/entitlement/grant-record.ts';
import { anyCase, decimalText, timestampText } from '../../core/record.ts';
import { RESERVATION_STATUSES, reservationShape } from '../../core/reservation/record.ts';
import { checkShape, commitShape } from '../../core/reservation/request.ts';
import { REASONS } from '../../core/reservation/room.ts';
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
      description: 'Units in the window, or money where `grant_measure` says amount; null is unlimited.',
    }),
    is_soft_limit: z.boolean().meta({ description: 'Whether usage beyond it is meant to go on.' }),
    usage_reset_period: z
      .string()
      .nullable()
      .meta({ description: 'How long usage adds up against it; null of what is granted bit by bit.' }),
    grant_measure: z.enum(GRANT_MEASURES).nullable().meta({
      description: 'Of what is granted bit by bit: whether the numbers are units or money; null of any other limit.',
    }),
    window_start: timestampText.meta({ description: 'Since when usage adds up.' }),
    window_end: timestampText.nullable().meta({ description: 'When it begins again from 0; null is never.' }),
    used: decimalText.meta({ description: 'What was used in the window, what was committed a moment ago too.' }),
    held: decimalText.meta({ description: 'What is held, by this one too.' }),
    remaining: decimalText.nullable().meta({ description: 'What is left of the limit; null is unlimited.' }),
  })
  .meta({ id: 'CheckedLimit' });

export const CheckAnswer = z
  .object({
    allowed: z.boolean().meta({ description: 'Whether it may be used.' }),
    reason: z.enum(REASONS).meta({ description: 'Why, in one word.' }),
    customer_id: z.string().meta({ description: 'Whose it is.' }),
    feature_id: z.string().nullable().meta({ description: 'The feature that was asked about; null of credits.' }),
    wallet_id: z.string().nullable().meta({ description: 'The wallet that was asked about; null of a feature.' }),
    quantity: decimalText.meta({ description: 'How many units, or credits, were asked about.' }),
    limit: decimalText
      .nullable()
      .meta({ description: 'The limit of which the least is left; null of credits and where nothing is limited.' }),
    is_soft_limit: z.boolean().meta({ description: 'Whether usage beyond that limit is meant to go on.' }),
    used: decimalText.nullable().meta({ description: 'What was used of it.' }),
    held: decimalText.meta({ description: 'What is held of the feature or the wallet, by this one too.' }),
    remaining: decimalText.nullable().meta({
      description:
        'What is left, of credits those that last until the hold ends; null where nothing is limited, or it is not known.',
    }),
    limits: z.array(CheckedLimit).meta({ description: 'Every limit that holds.' }),
    as_of: timestampText
      .nullable()
      .meta({ description: 'Every event that was accepted before is counted; null where nothing was.' }),
    reservation: ReservationAnswer.nullable().meta({ description: 'What is held; null where nothing is.' }),
  })
  .meta({ id: 'CheckEntitlementResponse' });

export const ReservationFilter = listShape({
  reservation_ids: matchAny('reservations'),
  customer_id: z.string().optional().meta({ description: 'Whose they are.' }),
  feature_ids: matchAny('features'),
  wallet_ids: matchAny('wallets'),
  reservation_status: anyCase(RESERVATION_STATUSES).optional().meta({ description: 'How far they are.' }),
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
