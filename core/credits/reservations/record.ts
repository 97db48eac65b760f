/**
 * A reservation holds units of a feature, or credits of a wallet, for a customer until they are used, released or expired
 * (docs/rules/reservations.md).
 */
import { z } from 'zod';
import { baseFields, decimalText, freeMap, metadata, optionalKey, timestampText } from '../../foundation/record.ts';
import { REASONS } from './room.ts';

/** `held` is open; every other status has ended. */
export const RESERVATION_STATUSES = ['held', 'committed', 'released', 'expired'] as const;
/** Action for a hold that is neither committed nor released in time. */
export const ON_EXPIRY = ['release', 'charge'] as const;
const ENDED_BY = ['commit', 'release', 'expiry'] as const;

export const reservationShape = z.object({
  id: z.string(),
  customer_id: z.string().meta({ description: 'Customer that the quantity is held for.' }),
  feature_id: z.string().nullable().meta({ description: 'Feature of the held units; null if credits are held.' }),
  wallet_id: z
    .string()
    .nullable()
    .meta({ description: 'Wallet of the held credits; null if units of a feature are held.' }),
  quantity: decimalText.meta({ description: 'Held units or credits.' }),
  committed_quantity: decimalText
    .nullable()
    .meta({ description: 'Quantity that was committed; null before the commit.' }),
  reservation_status: z
    .enum(RESERVATION_STATUSES)
    .meta({ description: 'Status: `held` until the reservation is committed, released or expired.' }),
  reason: z.enum(REASONS).meta({ description: 'Reason why the hold was allowed.' }),
  on_expiry: z
    .enum(ON_EXPIRY)
    .meta({ description: 'Action at expiry: `release` frees the quantity, `charge` commits it.' }),
  expires_at: timestampText.meta({ description: 'Instant from which the quantity is no longer held.' }),
  ended_at: timestampText
    .nullable()
    .meta({ description: 'Time of the commit, release or expiry; null while the reservation is held.' }),
  ended_by: z.enum(ENDED_BY).nullable().meta({ description: 'Cause of the end; null while the reservation is held.' }),
  properties: freeMap
    .nullable()
    .meta({ description: 'Properties of the event that a commit creates; null if none were given.' }),
  event_at: timestampText
    .nullable()
    .meta({ description: 'Timestamp of the event that the commit created; null if there is none.' }),
  wallet_transaction_id: z
    .string()
    .nullable()
    .meta({ description: 'Debit that the commit created; null for a feature.' }),
  metadata,
  idempotency_key: optionalKey.meta({ description: 'Idempotency key. One key is one reservation.' }),
  ...baseFields,
});

/** Reservation with the internal fields of its events, which no response shows. */
export type Reservation = z.output<typeof reservationShape> & {
  readonly subject_id: string;
  readonly event_text: string | null;
  readonly event_count: number;
  readonly is_sent: boolean;
};
